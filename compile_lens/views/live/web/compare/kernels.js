// Which kernels of two captures are open: those that stand for each other. What has no partner says so.

import { h } from "../dom.js";
import { firstKernels, partnerOf } from "./pairs.js";

/** @import { CodePane } from "../code/pane.js" */
/** @import { ComparedModule } from "../types.d.ts" */
/** @import { Side } from "./side.js" */

/** What is said of a kernel that the other side has not, by side. */
const LONE = ["gone", "new"];

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
 * @param {ComparedModule} now
 * @param {(Side | null)[]} sides
 */
export function openPartners(now, sides) {
  const joined = (/** @type {number} */ side, /** @type {number} */ item) => {
    const kernel = sides[side]?.pane?.data.kernels.find((one) => one.item === item);
    return kernel?.source ? (sides[side]?.model.units.of(item).length ?? -1) : -1;
  };
  firstKernels(now, joined).forEach((item, number) => {
    if (item !== null) openKernel(sides[number], item);
  });
}

/**
 * A kernel of one side was opened: what stands for it opens on the other.
 * @param {ComparedModule} now
 * @param {(Side | null)[]} sides
 * @param {number} number of the side
 * @param {number} item of the kernel
 */
export function openBeside(now, sides, number, item) {
  const partner = partnerOf(now, number, item);
  if (partner !== null && partner !== undefined) openKernel(sides[1 - number], partner);
}

/**
 * Kernels that the other side has not say so in their row.
 * @param {ComparedModule} now
 * @param {number} number of the side
 * @param {CodePane} pane
 */
export function noteLone(now, number, pane) {
  const title = "no kernel of the other side computes the same";
  pane.data.kernels.forEach(({ item }, i) => {
    if (partnerOf(now, number, item) !== null) return;
    pane.tabs[i]?.querySelector(".code-name")?.after(h("span", { class: "launch-note", title }, LONE[number]));
  });
}
