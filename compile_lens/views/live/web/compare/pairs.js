// Which units and kernels of two programs stand for each other. No elements.

import { FILLS } from "../data/units.js";

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
  const best = ranks.reduce((found, [kind, units], at) => {
    if (kind < 0 || (found >= 0 && (ranks[found][0] - kind || ranks[found][1] - units) >= 0)) return found;
    return at;
  }, -1);
  return best < 0 ? [null, null] : partners[best];
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
 * What stands beside a kernel on the other side: its item, null where there is none, undefined where that is not known.
 * @param {ComparedModule} module
 * @param {number} side
 * @param {number} item
 */
export function partnerOf({ partners }, side, item) {
  return partners.find((pair) => pair[side] === item)?.[1 - side];
}
