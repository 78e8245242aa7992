// The answer about a kernel: what bounds it, why it is not fused with a neighbour, what to try.

import { h, put } from "../dom.js";

/** @import { KernelData } from "../types.d.ts" */

/**
 * The place of the answer, which the keyboard scrolls.
 * @param {KernelData[]} kernels
 * @param {(page: number) => void} open
 */
export function answerStrip(kernels, open) {
  const element = h("div", { class: "code-answer", tabindex: 0, role: "group", "aria-label": "answer" });
  const show = (/** @type {number} */ shown, /** @type {boolean} */ chosen) =>
    put(element, ...answerOf(kernels, shown, chosen, open));
  return { element, show };
}

/**
 * The answer about the kernel that is shown; at rest about the one whose remedy could save most.
 * @param {KernelData[]} kernels
 * @param {number} shown counted from 0
 * @param {boolean} chosen a reader chose it
 * @param {(page: number) => void} open
 */
function answerOf(kernels, shown, chosen, open) {
  const saved = kernels.map(({ cost }) => cost?.saved ?? 0);
  const best = chosen ? -1 : saved.indexOf(Math.max(1, ...saved));
  const { cost, name } = kernels[best < 0 ? shown : best] ?? {};
  if (!cost) return [];
  const words = cost.answer.map(([title, said]) => [h("b", {}, ` ${title} `), said]);
  const other = best >= 0 && best !== shown;
  const kernel = `${other ? "Try first: " : ""}#${cost.order}`;
  const head = other ? h("button", { type: "button", title: name, onclick: () => open(best + 1) }, kernel) : kernel;
  return [h("b", {}, head), words].flat(2);
}
