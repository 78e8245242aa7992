// The printed page: the panes that are shown, one below the other, with their colours; folded and closed ones are named.
// The page itself has panes that scroll, of which paper would hold a window each.

import { notPrinted } from "../listing/print_rows.js";
import { h, put } from "../dom.js";

/**
 * The printed form of a pane: its own, else a copy of it.
 * @typedef {{ title: string, pane: { element: Element, paper?: () => Node[] } | null }} PrintedPane
 */

/**
 * @typedef {object} Printed
 * @property {HTMLElement} header of the page
 * @property {HTMLElement} flow
 * @property {() => PrintedPane[]} frames that are open, each in front of its tabs
 * @property {() => string[]} closed names of what is not
 */

export class Paper {
  /** @param {Printed} printed */
  constructor(printed) {
    this.printed = printed;
    this.element = h("div", { class: "paper" });
  }

  /** @param {HTMLElement} host */
  begin(host) {
    // Who has no script prints the static page.
    host.parentElement?.setAttribute("data-paper", "");
    // Some browsers tell of one of these only.
    window.addEventListener("beforeprint", () => this.show());
    matchMedia("print").addEventListener("change", ({ matches }) => (matches ? this.show() : put(this.element)));
    window.addEventListener("afterprint", () => put(this.element));
  }

  show() {
    const { header, flow, frames, closed } = this.printed;
    const words = (/** @type {Element} */ e) =>
      [...e.querySelectorAll(".flow-count, .flow-what")].map(textOf).join(" ");
    const spotlit = header.closest(".shell")?.classList.contains("spot");
    this.element.classList.toggle("spot", spotlit);
    const left = closed();
    put(
      this.element,
      h("h1", {}, textOf(header.querySelector(".top-name"))),
      h("p", { class: "paper-facts" }, facts(header)),
      [...header.querySelectorAll(".compare-all p")].map((cause) => h("p", {}, textOf(cause))),
      h("p", { class: "paper-facts" }, [...flow.querySelectorAll(".flow-noun")].map(words).join(" → ")),
      // Not at the end, where it might have a page of its own.
      left.length ? notPrinted(`${left.join(", ")}; what is open is printed`) : null,
      frames().map(section),
    );
  }
}

/** @param {Element | null} element */
function textOf(element) {
  return (element?.textContent ?? "").trim();
}

/** Parts of the header that say something of what is shown; those of a comparison's too. */
const FACTS = ".top-place, .top-chip, .compare-target, .compare-agreement";

/** The line of the header. @param {HTMLElement} header */
function facts(header) {
  const parts = header.querySelectorAll(`:scope > :is(${FACTS}), .top-savings > .saving, .top-device > *`);
  return [...parts].map(textOf).join(" · ");
}

/** @param {PrintedPane} frame */
function section({ title, pane }) {
  const own = pane?.paper?.() ?? (pane ? [pane.element.cloneNode(true)] : []);
  return h("section", { class: "paper-section" }, h("h2", {}, title), own);
}
