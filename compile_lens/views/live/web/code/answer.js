// The answer about a kernel: what bounds it, why it is not fused with a neighbour, what to try.

import { h, put } from "../dom.js";

/** @import { KernelData } from "../types.d.ts" */

/**
 * The place of the answer, which the keyboard scrolls.
 * @param {KernelData[]} kernels
 */
export function answerStrip(kernels) {
  const element = h("div", { class: "code-answer", tabindex: 0, role: "group", "aria-label": "answer" });
  return { element, show: (/** @type {number} */ shown) => put(element, ...answerOf(kernels[shown])) };
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
