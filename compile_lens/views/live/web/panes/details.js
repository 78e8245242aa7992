// The sections below the panes: ledger, what ran eagerly, notes.

import { h, linked, plural } from "../dom.js";
import { ledgerTable } from "./ledger.js";

/** @import { App } from "../data/app.d.ts" */
/** @import { Ending, Words } from "../types.d.ts" */

export class Details {
  /**
   * @param {App} app
   * @param {boolean} roomy whether the ledger is open at first
   */
  constructor(app, roomy) {
    this.core = app.model.core;
    /** The section on where Python took over. @type {HTMLDetailsElement | null} */
    this.places = null;
    this.element = h("div", { class: "below" }, this.ledger(roomy), this.eager(), this.notes());
  }

  /** Unfolds what ran eagerly and moves to it. */
  open() {
    if (!this.places) return;
    this.places.open = true;
    this.places.querySelector("summary")?.focus();
    this.places.scrollIntoView({ block: "nearest" });
  }

  /** @param {boolean} open */
  ledger(open) {
    const { ledger, compilations } = this.core;
    if (ledger.rows.length === 0) return null;
    const each = compilations.length > 1 ? compilations.filter((c) => c.ledger.rows.length) : [];
    const section = foldable(
      "Ledger",
      this.core.words.ledger,
      h(
        "div",
        {},
        ledgerTable(ledger, "Ledger of the whole capture", true),
        each
          .map((c) => [
            h("div", { class: "below-heading", role: "heading", "aria-level": "3" }, `${c.id} ${c.name}`),
            ledgerTable(c.ledger, `Ledger of compilation ${c.id}`, false),
          ])
          .flat(),
      ),
    );
    section.open = open;
    return section;
  }

  eager() {
    const { eager } = this.core;
    if (eager.length === 0) return null;
    const places = eager.map((one) => [
      h("div", { class: "below-heading", role: "heading", "aria-level": "3" }, one.head),
      reasonOf(one, one.became, this.core.words),
    ]);
    return (this.places = foldable("Ran eagerly", plural(eager.length, "place"), h("div", {}, places.flat())));
  }

  notes() {
    const { notes } = this.core;
    if (notes.length === 0) return null;
    return foldable(
      "Notes",
      String(notes.length),
      h(
        "div",
        {},
        notes.map((note) => h("p", { class: "note" }, note)),
      ),
    );
  }
}

/**
 * @param {string} title
 * @param {string} detail
 * @param {HTMLElement} content
 * @returns {HTMLDetailsElement}
 */
function foldable(title, detail, content) {
  return h(
    "details",
    { class: "below-section" },
    h("summary", {}, h("span", { class: "below-title" }, title), h("span", { class: "below-detail" }, detail)),
    h("div", { class: "below-body" }, content),
  );
}

/**
 * @param {Ending} ending
 * @param {string} became of the function for it
 * @param {Words} words
 */
export function reasonOf(ending, became, words) {
  return h(
    "div",
    { class: "below-break" },
    h("p", { class: "below-what" }, ending.what),
    ending.why ? h("p", {}, ending.why) : null,
    became ? h("p", {}, became) : null,
    ending.hint ? h("p", {}, h("b", {}, "Hint "), ending.hint) : null,
    ending.link ? h("p", {}, h("b", {}, "More "), ...linked(ending.link)) : null,
    ending.frames.length
      ? h(
          "ul",
          { class: "below-lines" },
          ending.frames.map((frame) => h("li", {}, frame)),
        )
      : null,
    ending.whole ? h("details", {}, h("summary", {}, words.wholeMessage), h("pre", {}, linked(ending.whole))) : null,
  );
}
