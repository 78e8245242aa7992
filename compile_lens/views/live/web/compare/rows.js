// Code of one capture beside that of others, with nothing open but the lines that these lack.

import { signsOf } from "../code/kernel_facts.js";

/** @import { Own } from "../code/kernel_facts.js" */
/** @import { Units } from "../data/units.js" */
/** @import { CodeData, Fold, KernelData } from "../types.d.ts" */

/**
 * Lines that others lack, by their kernel.
 * @param {[number, number, string][]} own
 */
export function byKernel(own) {
  /** @type {Map<number, Map<number, string>>} */
  const lines = new Map();
  for (const [kernel, at, words] of own) lines.set(kernel, (lines.get(kernel) ?? new Map()).set(at, words));
  return lines;
}

/**
 * Code in which all lines without a sign are folded.
 * @param {CodeData} data
 * @param {Own} own lines that others lack
 * @param {string} alike what is said of the lines that are folded
 * @param {Units | null} units given, lines of none are folded though they have a sign
 * @param {(item: number) => number | null | undefined} [partner] of a kernel: null where the others have none
 * @returns {CodeData}
 */
export function onlyDifferences(data, own, alike, units, partner = () => undefined) {
  return {
    ...data,
    kernels: data.kernels.map((kernel) => ({
      ...kernel,
      folds: foldsBetween(kernel, own, alike, units, partner(kernel.item) === null),
    })),
  };
}

/**
 * @param {KernelData} kernel
 * @param {Own} own
 * @param {string} alike
 * @param {Units | null} units
 * @param {boolean} lone whether the others have no such kernel
 */
function foldsBetween(kernel, own, alike, units, lone) {
  /** @type {Fold[]} */
  const folds = [];
  const count = kernel.source?.text.replace(/\n$/, "").split("\n").length ?? 0;
  const signed = new Set(signsOf(kernel, own).keys());
  const shown = (units ? coloured(kernel, signed, units) : [...signed]).sort((a, b) => a - b);
  let first = 1;
  for (const line of [...shown, count + 1]) {
    if (line > first) {
      const idle = [...signed].filter((one) => one >= first && one < line).length;
      const label = !idle ? alike : `${lone ? "" : `${idle} differ${idle === 1 ? "s" : ""}, `}of no Python line`;
      folds.push({ first, last: line - 1, label });
    }
    first = line + 1;
  }
  return folds;
}

/**
 * Lines that have a sign and came from something; all that have one where none came from anything.
 * @param {KernelData} kernel
 * @param {Set<number>} signed
 * @param {Units} units
 */
function coloured(kernel, signed, units) {
  const found = kernel.items.filter(([line, item]) => signed.has(line) && units.of(item).length).map(([line]) => line);
  return found.length ? found : [...signed];
}
