// The sections below the panes: ledger, why a compilation ended or was made again, guards, notes.

import { h, linked, plural, put } from "../dom.js";
import { ledgerTable } from "./ledger.js";

/** @import { App } from "../data/app.d.ts" */
/** @import { Compilation, Ending, Words } from "../types.d.ts" */

export class Details {
  /**
   * @param {App} app
   * @param {boolean} roomy whether the ledger is open at first
   */
  constructor(app, roomy) {
    this.core = app.model.core;
    /** Sections of the compilation that the strip shows, by name. @type {Map<string, HTMLDetailsElement>} */
    this.sections = new Map();
    /** Names of sections that are open, so that they stay open in another compilation. @type {Set<string>} */
    this.unfolded = new Set();
    this.own = h("div", {});
    /** Where Python took over. @type {HTMLDetailsElement | null} */
    this.places = null;
    this.element = h("div", { class: "below" }, this.ledger(roomy), this.eager(), this.own, this.notes());
  }

  /**
   * Shows the sections of a compilation.
   * @param {number} number
   */
  choose(number) {
    this.sections.clear();
    const compilation = this.core.compilations[number];
    if (!compilation) return put(this.own);
    const whose = this.core.compilations.length > 1 ? ` of ${compilation.id}` : "";
    put(
      this.own,
      this.section(
        "break",
        `Graph break${whose}`,
        "why the graph ended here",
        breakReason(compilation, this.core.words),
      ),
      this.section("recompile", `Recompile${whose}`, this.core.words.recompile, textLines(compilation.recompile)),
      this.section(
        "dynamic",
        `Dynamic dimensions${whose}`,
        String(compilation.dynamic.length),
        textLines(compilation.dynamic),
      ),
      this.section("guards", `Guards${whose}`, compilation.guardsMeaning, guardList(compilation)),
    );
  }

  /**
   * Unfolds a section and moves to it.
   * @param {string} name
   */
  open(name) {
    const found = name === "eager" ? this.places : this.sections.get(name);
    if (!found) return;
    found.open = true;
    found.querySelector("summary")?.focus();
    found.scrollIntoView({ block: "nearest" });
  }

  /**
   * @param {string} name
   * @param {string} title
   * @param {string} detail
   * @param {HTMLElement | null} content
   */
  section(name, title, detail, content) {
    if (!content) return null;
    const made = foldable(title, detail, content);
    made.open = this.unfolded.has(name);
    made.addEventListener("toggle", () => {
      if (made.open) this.unfolded.add(name);
      else this.unfolded.delete(name);
    });
    this.sections.set(name, made);
    return made;
  }

  /** @param {boolean} open */
  ledger(open) {
    const { ledger, compilations } = this.core;
    if (ledger.rows.length === 0) return null;
    const each = compilations.length > 1 ? compilations.filter((c) => c.ledger.rows.length) : [];
    const made = foldable(
      "Ledger",
      this.core.words.ledger,
      h(
        "div",
        {},
        ledgerTable(ledger, "Ledger of the whole capture", true),
        each
          .map((c) => [
            h("div", { class: "below-heading", role: "heading", "aria-level": "3" }, `${c.id} ${c.function}`),
            ledgerTable(c.ledger, `Ledger of compilation ${c.id}`, false),
          ])
          .flat(),
      ),
    );
    made.open = open;
    return made;
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

/** @param {string[]} lines */
function textLines(lines) {
  return lines.length
    ? h(
        "ul",
        { class: "below-lines" },
        lines.map((line) => h("li", {}, line)),
      )
    : null;
}

/** @param {Compilation} compilation @param {Words} words */
function breakReason({ ending }, words) {
  return ending && reasonOf(ending, "", words);
}

/**
 * @param {Ending} ending
 * @param {string} became of the function for it
 * @param {Words} words
 */
function reasonOf(ending, became, words) {
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

/** @param {Compilation} compilation */
function guardList({ guards, guardsLeft }) {
  if (guards.length === 0) return null;
  return h(
    "div",
    {},
    h(
      "dl",
      { class: "guards" },
      guards.map(([kind, text]) => h("div", {}, h("dt", {}, kind), h("dd", {}, text))),
    ),
    guardsLeft ? h("p", { class: "note" }, guardsLeft) : null,
  );
}
