// What a difference comes to, in its head: the first cause, in a line; all of it on demand.

import { button, h } from "../dom.js";
import { Popover } from "./popover.js";

/**
 * @param {string[]} summary lines, the first cause first
 * @returns {HTMLElement | null} null without any
 */
export function summaryOf(summary) {
  const [first] = summary;
  if (!first) return null;
  const whole = button("all of it", () => undefined, { class: "button compare-whole" });
  const lines = h(
    "div",
    { class: "compare-all" },
    summary.map((text) => h("p", {}, text)),
  );
  return h(
    "div",
    { class: "compare-summary" },
    h("p", { class: "compare-cause", title: first }, first),
    whole,
    new Popover(whole, lines, { name: "what differs" }).element,
  );
}
