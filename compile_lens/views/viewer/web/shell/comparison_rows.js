// Code of one target beside that of others, with nothing open but the lines that these lack.

import { signsOf } from "../code/kernel_facts.js";

/** @import { CodeData, Fold, KernelData } from "../types.d.ts" */

/**
 * Code in which all lines without a sign are folded.
 * @param {CodeData} data
 * @param {ReadonlyMap<number, string>} own items of lines that others lack
 * @returns {CodeData}
 */
export function onlyDifferences(data, own) {
  return { ...data, kernels: data.kernels.map((kernel) => ({ ...kernel, folds: foldsBetween(kernel, own) })) };
}

/**
 * @param {KernelData} kernel
 * @param {ReadonlyMap<number, string>} own
 */
function foldsBetween(kernel, own) {
  /** @type {Fold[]} */
  const folds = [];
  const count = kernel.source?.text.replace(/\n$/, "").split("\n").length ?? 0;
  const shown = [...signsOf(kernel, own).keys()].sort((a, b) => a - b);
  let first = 1;
  for (const line of [...shown, count + 1]) {
    if (line > first) folds.push({ first, last: line - 1, label: "another target has them, or no origin" });
    first = line + 1;
  }
  return folds;
}
