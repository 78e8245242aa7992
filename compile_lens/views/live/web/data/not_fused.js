// Pairs of groups that are not fused though they touch common data: which they are, and why, in words.

import { shortened } from "../dom.js";

/** @import { GraphData } from "../types.d.ts" */
/** @import { Model } from "./model.js" */

/** @typedef {{ first: number, second: number, how: string, reason: string, sentence: string, remedy: string, saved: string }} NotFusedPair */

/**
 * The pairs of a stage, in the order in which they run.
 * @param {GraphData} data
 * @returns {NotFusedPair[]}
 */
export function notFusedPairs({ notFused, strings }) {
  return notFused.map(({ first, second, ...words }) => ({
    first,
    second,
    how: strings[words.how],
    reason: strings[words.reason],
    sentence: strings[words.sentence],
    remedy: strings[words.remedy],
    saved: strings[words.saved],
  }));
}

/**
 * Everything that is to be said of a pair, a line each.
 * @param {NotFusedPair} pair
 */
export function pairLines({ how, reason, sentence, remedy, saved }) {
  const lines = [`not fused, ${reason}: ${how}`, sentence];
  if (saved) lines.push(`fusing them could save at most ${saved} (modelled)`);
  if (remedy) lines.push(`to try: ${remedy}`);
  return lines;
}

/**
 * The pair that two nodes are, in either order.
 * @param {NotFusedPair[]} pairs
 * @param {number} one
 * @param {number} other
 */
export function pairOf(pairs, one, other) {
  return pairs.find(({ first, second }) => (first === one && second === other) || (first === other && second === one));
}

/**
 * The panel's words about one of the two: a line for each pair that it is in.
 * @param {NotFusedPair[]} pairs
 * @param {number} local
 * @param {(local: number) => string} name
 * @returns {string[]}
 */
export function pairWords(pairs, local, name) {
  return pairs
    .filter(({ first, second }) => first === local || second === local)
    .map((pair) => {
      const other = shortened(name(pair.first === local ? pair.second : pair.first), 60);
      return `${other}: ${pair.reason}. ${pair.sentence}${pair.saved ? ` Fusing them could save at most ${pair.saved}.` : ""}`;
    });
}

/**
 * The two groups that something is about; none for anything else.
 * @param {EventTarget | null} target
 * @returns {number[]}
 */
export function pairItems(target) {
  const element = target instanceof Element ? target.closest("[data-pair]") : null;
  return element ? (element.getAttribute("data-pair") ?? "").split(" ").map(Number) : [];
}

/**
 * @param {Model} model
 * @param {number[]} items
 */
export function pairName(model, items) {
  return items.map((item) => shortened(model.name(item), 40)).join(" and ");
}
