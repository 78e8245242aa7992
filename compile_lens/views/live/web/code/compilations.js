// Below the source, a table of its compilations; on its lines, where graphs broke.

import { h, plural, shortened } from "../dom.js";

/** @import { App } from "../data/app.d.ts" */
/** @import { Compilation, Core, Source } from "../types.d.ts" */
/** @import { Note } from "../listing/line_notes.js" */

/** Rows of the table; the rest is in the list of all compilations. */
const MOST = 60;
/** Characters of a reason on its line. */
const REASON = 200;

/**
 * The places where it failed and where graphs broke in a function: by line, counted from 1, what the compiler said and advises.
 * @param {Core} core
 * @param {Pick<Source, "file" | "first" | "code">} source
 */
export function notesIn(core, { file, first, code }) {
  /** @type {Map<number, Note>} */
  const notes = new Map();
  const lines = code.text.split("\n").length;
  const { failure } = core.outcome;
  const fault = failure?.frames.find((frame) => core.sources.some((source) => holds(source, frame)));
  if (failure && fault && holds({ file, first, code }, fault))
    notes.set(fault.line - first + 1, {
      text: shortened(failure.reason, 2 * REASON),
      title: failure.hint,
      failed: true,
      start: fault.start ?? undefined,
      end: fault.end ?? undefined,
    });
  for (const { what, hint, file: where, line, count, start, end, next } of core.breaks) {
    const at = line - first + 1;
    const known = notes.get(at);
    if (where !== file || at < 1 || at > lines || known?.failed) continue;
    // Of several in a line each names its call, as `chain` takes it.
    const several = core.breaks.filter((one) => one.file === file && one.line === line).length > 1;
    const place = several && end !== null ? ` at ${line}:${start}-${end}` : "";
    const text = `${count > 1 ? plural(count, "graph break") : "graph break"}${place}: ${shortened(what, REASON)}`;
    notes.set(at, {
      text: known ? `${known.text}; ${text}` : text,
      hint: joined([known?.hint, advice(hint)]),
      title: [known?.title, what, hint].filter(Boolean).join("\n"),
      next: known?.next ?? (next < core.compilations.length ? next : -1),
      whole: joined([known?.whole, hint && `Hint: ${hint.replace(/\s+/g, " ")}`]),
    });
  }
  return notes;
}

/**
 * The advice of several, each once.
 * @param {(string | undefined)[]} words
 */
function joined(words) {
  return [...new Set(words.filter(Boolean))].join(" ");
}

/**
 * The first sentence of what the compiler advises, and a sign that there is more: a click shows it. "e.g." ends none.
 * @param {string} hint
 */
function advice(hint) {
  const [first] = hint.split(/(?<=\w{3}\W*\.)\s/);
  return (
    first && `Hint: ${shortened(first, REASON)}${first.length < hint.length && first.length <= REASON ? " …" : ""}`
  );
}

/**
 * True if a function holds a line.
 * @param {Pick<Source, "file" | "first" | "code">} source
 * @param {{ file: string, line: number }} frame
 */
function holds({ file, first, code }, frame) {
  return frame.file === file && frame.line >= first && frame.line < first + code.text.split("\n").length;
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
        h("h2", { class: "source-name" }, "Compilations"),
        h("span", { class: "source-place" }, `${compilations.length}, ${working} with work`),
        h(
          "span",
          { class: "compilations-what", "aria-hidden": "true" },
          "eager ops → launches",
          h("span", {}, " · why"),
        ),
      ),
      this.rows,
      compilations.length > MOST ? h("p", { class: "note" }, `and ${compilations.length - MOST} more`) : null,
    );
    this.choose();
  }

  /** Marks the row of the compilation that is shown. */
  choose() {
    this.rows.forEach((row, number) => row.setAttribute("aria-pressed", String(number === this.app.compilation)));
  }
}

/** @param {Compilation} compilation */
function total({ ledger }) {
  return ledger.rows.at(-1)?.figures ?? [];
}

/**
 * True if anything was handed to Inductor, and not only values that go in and out again.
 * @param {Compilation} compilation
 */
function works(compilation) {
  const figures = total(compilation);
  const given = compilation.lanes.some(({ phase, steps }) => phase && steps.some(({ stage }) => stage >= 0));
  return given && !(figures[0] === "0" && figures[4] === "0");
}

/** A figure of the ledger, without how many graphs it is of; what is not known is `?`. @param {string | undefined} text */
function known(text) {
  return !text || text === "—" ? "?" : text.replace(/ \(.*\)$/, "");
}

/**
 * @param {Compilation} compilation
 * @param {() => void} choose
 */
function row(compilation, choose) {
  const { id, name, began } = compilation;
  const figures = total(compilation);
  const busy = works(compilation);
  return h(
    "button",
    { type: "button", class: busy ? "compilation" : "compilation idle", "aria-pressed": "false", onclick: choose },
    h("span", { class: "compilation-id" }, id),
    h("span", { class: "compilation-name", title: name }, shortened(name, 60)),
    h("span", { class: "compilation-work" }, busy ? `${known(figures[0])} → ${known(figures[4])}` : "no work"),
    h(
      "span",
      { class: "compilation-why", title: began.whole || null },
      began.again ? [h("b", { class: "compilation-again" }, "again"), " "] : null,
      shortened(began.short, 90),
    ),
  );
}
