// The sum of the matches in all open panes, and of each, below the field of Find.

import { grouped, h, put } from "../dom.js";
import { replacementWords } from "./replacements.js";

/** @import { PageOfCapture } from "../code/additions.js" */

export class FindTotal {
  /** @param {PageOfCapture} page */
  constructor(page) {
    this.page = page;
    this.wanted = "";
    /** The matches of each field, and whether there are more. @type {Map<Element, [number, boolean]>} */
    this.counts = new Map();
    /** Each pane says its own to a screen reader. */
    this.element = h("p", { class: "popover popover-right find-total", "aria-hidden": "true", hidden: true });
    /** @param {Event} event */
    this.heard = (event) => {
      if (!(event instanceof CustomEvent) || !(event.target instanceof Element)) return;
      this.counts.set(event.target, event.detail);
      this.tell();
    };
  }

  /**
   * Begins anew.
   * @param {string} wanted
   * @param {Element[]} fields the searches of the panes, which say what they found
   */
  begin(wanted, fields) {
    this.wanted = wanted;
    this.counts.clear();
    this.element.hidden = true;
    for (const field of fields) field.addEventListener("found", this.heard);
  }

  tell() {
    const { page, wanted } = this;
    let total = 0;
    let least = false;
    const parts = page.panes.shown.flatMap(({ element }) => {
      const known = [...element.querySelectorAll("input")].flatMap((field) => {
        const count = this.counts.get(field);
        return count ? [count] : [];
      });
      if (known.length === 0) return [];
      const count = known.reduce((sum, [one]) => sum + one, 0);
      const more = known.some(([, one]) => one);
      total += count;
      least ||= more;
      const why = count ? "" : replacementWords(page, element, wanted);
      return [`${grouped(count)}${more ? "+" : ""} in ${element.getAttribute("aria-label")}${why ? `: ${why}` : ""}`];
    });
    this.element.hidden = wanted === "";
    const words = `${grouped(total)}${least ? "+" : ""} found`;
    put(this.element, h("b", {}, words), parts.length > 1 ? ` ${parts.join("; ")}` : "");
  }
}
