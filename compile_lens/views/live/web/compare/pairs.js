// The units, kernels and items of two programs that stand for each other. No elements.

import { PYTHON } from "../data/model.js";
import { FILLS } from "../data/units.js";

/** @import { Chain } from "../data/chain.js" */
/** @import { Model } from "../data/model.js" */
/** @import { ComparedModule } from "../types.d.ts" */

/**
 * Units that are the same: those that something that is the same came from.
 * @param {[number[], number[]][]} same numbers of units on both sides
 * @param {[number, number]} counts of units
 * @returns {{ partners: [number[][], number[][]], names: [string[], string[]] }} of each unit of each side its
 *   partners, and a name: one that several share have one colour
 */
export function pairUnits(same, counts) {
  const [ones, twos] = counts.map((count) =>
    Array.from({ length: count }, () => /** @type {Set<number>} */ (new Set())),
  );
  for (const [left, right] of same)
    for (const one of left)
      for (const two of right) {
        ones[one].add(two);
        twos[two].add(one);
      }
  // A unit that has one partner alone is called as that is: calls as the line that they became, and the other way round.
  const parent = Array.from({ length: counts[0] + counts[1] }, (_, unit) => unit);
  const root = (/** @type {number} */ unit) => {
    let at = unit;
    while (parent[at] !== at) at = parent[at];
    return at;
  };
  ones.forEach((own, one) => {
    for (const two of own)
      if (own.size === 1 || twos[two].size === 1) {
        const [low, high] = [root(one), root(counts[0] + two)].sort((a, b) => a - b);
        parent[high] = low;
      }
  });
  const names = parent.map((_, unit) => `paired ${root(unit)}`);
  return {
    partners: [ones.map((own) => [...own]), twos.map((own) => [...own])],
    names: [names.slice(0, counts[0]), names.slice(counts[0])],
  };
}

/**
 * The colour that the fewest have, the first of them.
 * @param {number[]} colours
 */
export function rarest(colours) {
  const uses = Array.from({ length: 2 * FILLS }, (_, colour) => colours.filter((one) => one === colour).length);
  return uses.indexOf(Math.min(...uses));
}

/**
 * The kernels that a difference opens with, by item, one for each side: two that are the same and differ in a line, those
 * that join the most; else one that the other has not; else two that are the same.
 * @param {ComparedModule} module
 * @param {(side: number, item: number) => number} joined how many units a kernel joins; below 0 where it has no source
 * @returns {(number | null)[]} null where any will do
 */
export function firstKernels({ partners, own }, joined) {
  const differ = new Set(own.flatMap((lines, side) => lines.map(([item]) => `${side} ${item}`)));
  const ranks = partners.map((pair) => {
    const both = pair.every((item) => item !== null);
    const units = pair.map((item, side) => (item === null ? -1 : joined(side, item)));
    const differs = pair.some((item, side) => differ.has(`${side} ${item}`));
    if (both ? Math.min(...units) < 0 : Math.max(...units) < 0) return [-1, 0];
    return [both && differs ? 2 : both ? 0 : 1, Math.max(...units)];
  });
  const first = ranks.reduce((best, [kind, units], at) => {
    if (kind < 0 || (best >= 0 && (ranks[best][0] - kind || ranks[best][1] - units) >= 0)) return best;
    return at;
  }, -1);
  return first < 0 ? [null, null] : partners[first];
}

/**
 * Kernels of all modules that are the same.
 * @param {Pick<ComparedModule, "partners">[]} modules
 * @returns {[number, number][]}
 */
export function pairedKernels(modules) {
  return modules.flatMap(({ partners }) =>
    partners.flatMap(([one, two]) =>
      one === null || two === null ? [] : [/** @type {[number, number]} */ ([one, two])],
    ),
  );
}

/**
 * The kernel that stands beside one on the other side: its item, null where there is none, undefined where that is not known.
 * @param {ComparedModule} module
 * @param {number} side
 * @param {number} item
 */
export function partnerOf({ partners }, side, item) {
  return partners.find((pair) => pair[side] === item)?.[1 - side];
}

/** Stages whose nodes were matched with the other's one by one: what is not paired there has no like. */
const MATCHED = /^(dynamo|forward|backward|inference)(\.post_grad)?$/;

/**
 * The partners of some items, as `diff` matched them. A Python line is what Dynamo read from it; a line of a kernel, a
 * loop or a kernel without a partner is the operators that it computes.
 * @param {number[]} items
 * @param {ReadonlyMap<number, number>} partners
 * @param {Pick<Model, "index" | "stageOf">} model
 * @param {Pick<Chain, "above" | "below">} chain
 * @returns {number[]}
 */
export function counterparts(items, partners, model, chain) {
  const matches = new Set();
  const seen = new Set(items);
  for (const item of seen) {
    const partner = partners.get(item);
    const stage = model.stageOf(item);
    if (partner !== undefined) matches.add(partner);
    else if (stage === PYTHON) {
      if (items.includes(item)) for (const below of chain.below(item)) seen.add(below);
    } else if (!MATCHED.test(model.index.stages[stage].key)) for (const above of chain.above(item)) seen.add(above);
  }
  return [...matches];
}
