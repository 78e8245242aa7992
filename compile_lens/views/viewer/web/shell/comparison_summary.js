// What a difference comes to, above its code: the first cause and its figures, a line each; the rest on demand.

import { button, h } from "../dom.js";

export class Summary {
  /** @param {[string, boolean][]} summary lines, and whether each stands there at first */
  constructor(summary) {
    this.lines = summary.map(([text, brief]) => h("p", { class: brief ? null : "compare-detail", title: text }, text));
    this.whole = button("all of it", () => this.turn(), { class: "button compare-whole" });
    this.whole.setAttribute("aria-expanded", "false");
    /** @type {HTMLElement | null} */
    this.element = summary.length
      ? h("div", { class: "compare-summary" }, h("div", { class: "compare-said" }, this.lines), this.whole)
      : null;
  }

  turn() {
    const open = this.element?.classList.toggle("compare-open") ?? false;
    this.whole.setAttribute("aria-expanded", String(open));
  }

  /** There is a button for the rest where there is one. */
  fit() {
    if (this.element?.classList.contains("compare-open")) return;
    const cut = (/** @type {HTMLElement} */ one) => one.offsetWidth === 0 || one.scrollWidth > one.clientWidth;
    this.whole.hidden = !this.lines.some(cut);
  }
}
