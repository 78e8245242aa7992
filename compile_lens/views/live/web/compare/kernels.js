// The kernels of a column: which are open, which lines are folded, which have no partner on the other side.

import { signsOf } from "../code/kernel_facts.js";
import { h } from "../dom.js";
import { firstKernels, partnerOf } from "./pairs.js";

/** @import { Own } from "../code/kernel_facts.js" */
/** @import { CodePane } from "../code/pane.js" */
/** @import { Units } from "../data/units.js" */
/** @import { CodeData, ComparedModule, Fold, KernelData } from "../types.d.ts" */
/** @import { Side } from "./side.js" */

/** Words about a kernel that the other side has not, by side. */
const UNMATCHED = ["gone", "new"];

/**
 * Shows a kernel by its item.
 * @param {Side | null | undefined} side
 * @param {number} item
 */
function openKernel(side, item) {
  const at = side?.pane?.data.kernels.findIndex((kernel) => kernel.item === item) ?? -1;
  if (at >= 0) side?.pane?.open(at + 1);
}

/**
 * The kernels that a module opens with.
 * @param {ComparedModule} module
 * @param {(Side | null)[]} sides
 */
export function openPartners(module, sides) {
  const joined = (/** @type {number} */ side, /** @type {number} */ item) => {
    const kernel = sides[side]?.pane?.data.kernels.find((one) => one.item === item);
    return kernel?.source ? (sides[side]?.model.units.of(item).length ?? -1) : -1;
  };
  firstKernels(module, joined).forEach((item, number) => {
    if (item !== null) openKernel(sides[number], item);
  });
}

/**
 * A kernel of one side was opened: what stands for it opens on the other.
 * @param {ComparedModule} module
 * @param {(Side | null)[]} sides
 * @param {number} number of the side
 * @param {number} item of the kernel
 */
export function openBeside(module, sides, number, item) {
  const partner = partnerOf(module, number, item);
  if (partner !== null && partner !== undefined) openKernel(sides[1 - number], partner);
}

/**
 * Kernels that the other side has not say so in their row.
 * @param {ComparedModule} module
 * @param {number} number of the side
 * @param {CodePane} pane
 */
export function noteUnmatched(module, number, pane) {
  const title = "no kernel of the other side computes the same";
  pane.data.kernels.forEach(({ item }, i) => {
    if (partnerOf(module, number, item) !== null) return;
    pane.tabs[i]?.querySelector(".code-name")?.after(h("span", { class: "launch-note", title }, UNMATCHED[number]));
  });
}

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
 * @param {boolean} unmatched whether the others have no such kernel
 */
function foldsBetween(kernel, own, alike, units, unmatched) {
  /** @type {Fold[]} */
  const folds = [];
  const count = kernel.source?.text.replace(/\n$/, "").split("\n").length ?? 0;
  const signed = new Set(signsOf(kernel, own).keys());
  const shown = (units ? coloured(kernel, signed, units) : [...signed]).sort((a, b) => a - b);
  let first = 1;
  for (const line of [...shown, count + 1]) {
    if (line > first) {
      const idle = [...signed].filter((one) => one >= first && one < line).length;
      const label = !idle ? alike : `${unmatched ? "" : `${idle} differ${idle === 1 ? "s" : ""}, `}of no Python line`;
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
  const shown = kernel.items.filter(([line, item]) => signed.has(line) && units.of(item).length).map(([line]) => line);
  return shown.length ? shown : [...signed];
}
