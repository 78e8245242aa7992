// Below the source, a table of its compilations; on its lines, where graphs broke.

import { h, shortened } from "../dom.js";

/** @import { App } from "../data/app.d.ts" */
/** @import { Compilation, Core } from "../types.d.ts" */

/** Rows of the table; the rest is in the list of all compilations. */
const MOST = 60;
/** Characters of a reason on its line. */
const REASON = 60;

/**
 * Where graphs broke in a function: by line, counted from 1, what the compiler said and advises.
 * @param {Core} core
 * @param {string} file
 * @param {number} first its first line
 */
export function breaksIn({ eager }, file, first) {
  /** @type {Map<number, { text: string, title: string }>} */
  const found = new Map();
  for (const { what, hint, file: where, line, head } of eager) {
    const at = line - first + 1;
    if (where !== file || at < 1 || found.has(at) || !head.startsWith("graph break")) continue;
    found.set(at, { text: `graph break: ${shortened(what, REASON)}`, title: [what, hint].filter(Boolean).join("\n") });
  }
  return found;
}

/** Id, name, operators and launches, and why each was compiled. */
export class CompilationTable {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    const { compilations } = app.model.core;
    const shown = compilations.length > 1 ? compilations.slice(0, MOST) : [];
    this.rows = shown.map((compilation, number) => row(compilation, () => app.choose(number)));
    const working = shown.filter((one) => works(one)).length;
    this.element = h(
      "section",
      { class: "compilations", "aria-label": "compilations", hidden: shown.length === 0 },
      h(
        "div",
        { class: "source-head" },
        h("h4", { class: "source-name" }, "Compilations"),
        h("span", { class: "source-place" }, `${compilations.length}, ${working} with work`),
      ),
      this.rows,
      compilations.length > MOST ? h("p", { class: "note" }, `and ${compilations.length - MOST} more`) : null,
    );
    this.choose();
  }

  /** Marks the row of the compilation that is shown. */
  choose() {
    this.rows.forEach((made, number) => made.setAttribute("aria-pressed", String(number === this.app.compilation)));
  }
}

/** @param {Compilation} compilation */
function total({ ledger }) {
  return ledger.rows.at(-1)?.figures ?? [];
}

/** Whether anything was handed to Inductor. @param {Compilation} compilation */
function works(compilation) {
  return compilation.lanes.some(({ phase, steps }) => phase && steps.some(({ stage }) => stage >= 0));
}

/**
 * @param {Compilation} compilation
 * @param {() => void} choose
 */
function row(compilation, choose) {
  const { id, name, function: own, recompile } = compilation;
  const figures = total(compilation);
  const busy = works(compilation);
  const why = recompile.length ? shortened(recompile[0], 90) : name === own ? "called" : "continues after a break";
  return h(
    "button",
    { type: "button", class: busy ? "compilation" : "compilation idle", "aria-pressed": "false", onclick: choose },
    h("span", { class: "compilation-id" }, id),
    h("span", { class: "compilation-name" }, shortened(name, 60)),
    h("span", { class: "compilation-work" }, busy ? `${figures[0]} → ${figures[4]}` : "no work"),
    h(
      "span",
      { class: "compilation-why", title: recompile[0] ?? null },
      recompile.length ? h("b", { class: "compilation-again" }, "again") : null,
      why,
    ),
  );
}
