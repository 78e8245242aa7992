// The tracing of a compilation: why it ended or was compiled again, what is dynamic, its guards.

import { h, put } from "../dom.js";
import { reasonOf } from "./details.js";

/** @import { App, Pane } from "../data/app.d.ts" */
/** @import { Compilation, Words } from "../types.d.ts" */

/** @implements {Pane} */
export class TracedPane {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    /** @type {HTMLElement | null} */
    this.tools = null;
    this.element = h("div", { class: "outcome", tabindex: "0", role: "group", "aria-label": "traced" });
    this.recolour();
  }

  recolour() {
    const { core } = this.app.model;
    const compilation = core.compilations[this.app.compilation];
    put(this.element, compilation ? tracingOf(compilation, core.words) : []);
  }
}

/**
 * @param {Compilation} compilation
 * @param {Words} words
 */
function tracingOf({ ending, recompile, dynamic, guards, guardsMeaning, guardsLeft }, words) {
  /** @param {string} title @param {string} detail @param {boolean} there @param {() => Node} content */
  const part = (title, detail, there, content) =>
    there ? [h("h3", {}, title, h("span", { class: "below-detail" }, ` ${detail}`)), content()] : [];
  const list = (/** @type {string[]} */ lines) => () =>
    h(
      "ul",
      { class: "below-lines" },
      lines.map((line) => h("li", {}, line)),
    );
  const rows = () =>
    h(
      "dl",
      { class: "guards" },
      guards.map(([kind, text]) => h("div", {}, h("dt", {}, kind), h("dd", {}, text))),
    );
  return [
    ...(ending ? part("Graph break", "why the graph ended here", true, () => reasonOf(ending, "", words)) : []),
    ...part("Recompile", words.recompile, recompile.length > 0, list(recompile)),
    ...part("Dynamic dimensions", String(dynamic.length), dynamic.length > 0, list(dynamic)),
    ...part("Guards", guardsMeaning, guards.length > 0, rows),
    guardsLeft ? h("p", { class: "note" }, guardsLeft) : null,
  ];
}
