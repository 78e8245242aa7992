// The answer about a kernel: what bounds it, why it is not fused with a neighbour, what to try.

import { h, put } from "../dom.js";

/** @import { Units } from "../data/units.js" */
/** @import { KernelData } from "../types.d.ts" */

/**
 * The place of the answer, which the keyboard scrolls.
 * @param {Units} units
 * @param {KernelData[]} kernels
 */
export function answerStrip(units, kernels) {
  const element = h("div", { class: "code-answer", tabindex: 0, role: "group", "aria-label": "answer" });
  /** What a kernel costs each of its lines. @param {number} i */
  const worth = (i) => (kernels[i].cost?.bar ?? 0) / Math.max(1, units.of(kernels[i].item).length);
  return {
    element,
    show: (/** @type {number} */ shown) => put(element, ...answerOf(kernels[shown])),
    /** Numbers of kernels, what costs most first. */
    first: (/** @type {number[]} */ numbers) => numbers.sort((a, b) => worth(b) - worth(a)),
  };
}

/**
 * Its number in the list, and what there is to say; code is in backticks.
 * @param {KernelData | undefined} kernel
 */
function answerOf(kernel) {
  if (!kernel?.cost) return [];
  const code = (/** @type {string} */ said) =>
    said.split("`").map((words, i) => (i % 2 ? h("code", {}, words) : words));
  const parts = kernel.cost.answer.map(([title, said]) => [h("b", {}, ` ${title} `), code(said)]);
  return [h("b", {}, `#${kernel.cost.order}`), parts].flat(3);
}
