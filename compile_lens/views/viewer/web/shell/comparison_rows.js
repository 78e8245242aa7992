// Code of one capture beside that of others, with nothing open but the lines that these lack.

import { signsOf } from "../code/kernel_facts.js";

/** @import { Own } from "../code/kernel_facts.js" */
/** @import { CodeData, Fold, KernelData } from "../types.d.ts" */

/**
 * Code in which all lines without a sign are folded.
 * @param {CodeData} data
 * @param {Own} own lines that others lack
 * @param {string} alike what is said of the lines that are folded
 * @returns {CodeData}
 */
export function onlyDifferences(data, own, alike) {
  return { ...data, kernels: data.kernels.map((kernel) => ({ ...kernel, folds: foldsBetween(kernel, own, alike) })) };
}

/**
 * @param {KernelData} kernel
 * @param {Own} own
 * @param {string} alike
 */
function foldsBetween(kernel, own, alike) {
  /** @type {Fold[]} */
  const folds = [];
  const count = kernel.source?.text.replace(/\n$/, "").split("\n").length ?? 0;
  const shown = [...signsOf(kernel, own).keys()].sort((a, b) => a - b);
  let first = 1;
  for (const line of [...shown, count + 1]) {
    if (line > first) folds.push({ first, last: line - 1, label: alike });
    first = line + 1;
  }
  return folds;
}
