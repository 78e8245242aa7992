// A pinned chain as text, a row for each stage: Python line → … → kernel → line of the kernel.

import { PYTHON } from "../data/model.js";
import { button, grouped, h, plural, put, shortened } from "../dom.js";
import { Reach, labelOf } from "../data/reasons.js";

/** @import { App, Pin } from "../data/app.d.ts" */
/** @import { Model } from "../data/model.js" */
/** @import { CodeData, Compilation, Step } from "../types.d.ts" */

/**
 * @typedef {object} ChainRow
 * @property {string} title
 * @property {string} phase
 * @property {number} stage its number; -1 if it was not seen
 * @property {"python" | "nodes" | "kernels" | "lines" | "none"} holds
 * @property {number[]} items
 * @property {string} reason why it holds none
 */

/** So many names of a row are shown at first, and so many more at each step. */
const CHAIN_FEW = 12;
const CHAIN_MORE = 200;

/**
 * The rows of a chain: Python, then each compilation that it reaches, stage by stage. Neighbours that hold
 * nothing for the same reason share a row.
 * @param {Reach} reach
 * @returns {ChainRow[]}
 */
export function chainRows(reach) {
  const { model } = reach;
  /** @type {ChainRow[]} */
  const rows = [];
  rows.push(chainRow("Python", "", PYTHON, "python", reach.stages.get(PYTHON) ?? [], reach.stages.has(PYTHON) ? "" : reach.why(PYTHON)));
  const reached = new Set([...reach.stages.keys()].map((stage) => model.index.stages[stage].compilation));
  model.core.compilations.forEach((compilation, number) => {
    if (reached.size > 1 || !reached.has(-1)) {
      if (!reached.has(number)) return;
    }
    for (const { phase, steps } of compilation.lanes) {
      for (const step of steps) rows.push(...stepRows(reach, step, phase, stepTitle(model, compilation, phase, step)));
    }
  });
  return merged(rows);
}

/**
 * The title of a step, with its phase, and with its compilation where there are several.
 * @param {Model} model
 * @param {Compilation} compilation
 * @param {string} phase
 * @param {Step} step
 */
function stepTitle(model, compilation, phase, step) {
  if (step.stage >= 0) return model.stageTitle(step.stage);
  const plain = phase && step.key !== phase ? `${phase} ${step.title}` : phase || step.title;
  return model.core.compilations.length > 1 ? `${compilation.id} ${plain}` : plain;
}

/**
 * @param {Reach} reach
 * @param {Step} step
 * @param {string} phase
 * @param {string} title
 * @returns {ChainRow[]}
 */
function stepRows(reach, step, phase, title) {
  const items = step.stage < 0 ? [] : (reach.stages.get(step.stage) ?? []);
  if (items.length === 0) return [chainRow(title, phase, step.stage, "none", [], reach.whyAt(step))];
  if (!reach.model.isCode(step.stage)) return [chainRow(title, phase, step.stage, "nodes", items, "")];
  const { start, kernels } = reach.model.index.stages[step.stage];
  const lines = items.filter((item) => item >= start + kernels);
  const rows = [];
  if (items.length > lines.length) {
    const own = items.filter((item) => item < start + kernels);
    rows.push(chainRow(title, phase, step.stage, "kernels", own, ""));
  }
  const why = lines.length ? "" : "the record links no line of it to this chain";
  rows.push(chainRow(`${title}, lines`, phase, step.stage, lines.length ? "lines" : "none", lines, why));
  return rows;
}

/**
 * @param {string} title
 * @param {string} phase
 * @param {number} stage
 * @param {ChainRow["holds"]} holds
 * @param {number[]} items
 * @param {string} reason
 * @returns {ChainRow}
 */
function chainRow(title, phase, stage, holds, items, reason) {
  return { title, phase, stage, holds: items.length ? holds : "none", items, reason };
}

/** @param {ChainRow[]} rows */
function merged(rows) {
  /** @type {(ChainRow & { last?: string })[]} */
  const found = [];
  for (const row of rows) {
    const before = found[found.length - 1];
    if (before && row.holds === "none" && before.holds === "none" && before.reason === row.reason && before.phase === row.phase) before.last = row.title;
    else found.push({ ...row });
  }
  return found.map(({ last, ...row }) => ({ ...row, title: last ? `${row.title} … ${last}` : row.title }));
}

/**
 * The chain in one line: `model.py:7 → sin → … → cpp_fused_0`; a second phase follows after a semicolon.
 * @param {Model} model
 * @param {ChainRow[]} rows
 */
export function chainInLine(model, rows) {
  /** @type {Map<string, string[]>} */
  const phases = new Map();
  for (const { phase, holds, items } of rows) {
    if (holds === "none" || holds === "lines") continue;
    const first = shortened(labelOf(model, items[0]), 40);
    const said = items.length > 1 ? `${first} +${items.length - 1}` : first;
    const parts = phases.get(phase) ?? [];
    if (parts[parts.length - 1] !== said) parts.push(said);
    phases.set(phase, parts);
  }
  const shared = phases.get("") ?? [];
  phases.delete("");
  const tails = [...phases.values()];
  const last = shared[shared.length - 1];
  for (const parts of tails) if (parts[0] === last) parts.shift();
  const lead = [...shared, ...(tails.shift() ?? [])];
  /** @param {string[]} parts */
  const elided = (parts) => (parts.length > 7 ? [...parts.slice(0, 4), "…", ...parts.slice(-2)] : parts);
  return [elided(lead).join(" → "), ...tails.map((parts) => `… → ${elided(parts).join(" → ")}`)].join(";  ");
}

/**
 * The chain as text to copy.
 * @param {Model} model
 * @param {string} name
 * @param {ChainRow[]} rows
 * @param {(item: number) => string} [textOf] the text of a line, where it is known
 */
export function chainAsText(model, name, rows, textOf = () => "") {
  const width = Math.min(40, Math.max(...rows.map((row) => row.title.length)));
  const lines = rows.flatMap((row) => {
    const title = row.title.padEnd(width);
    if (row.holds === "none") return [`${title}  (none: ${row.reason})`];
    if (row.holds === "nodes" || row.holds === "kernels") return [`${title}  ${row.items.map((item) => labelOf(model, item)).join(", ")}`];
    return row.items.map((item, i) => `${i === 0 ? title : " ".repeat(width)}  ${[labelOf(model, item), textOf(item)].filter(Boolean).join("  ")}`);
  });
  return [`Chain of ${name}`, ...lines].join("\n") + "\n";
}

/**
 * Stages and items that stand in the chains of all pins.
 * @param {Model} model
 * @param {Reach[]} reaches
 * @returns {[number, number[]][]} by stage
 */
export function sharedItems(model, reaches) {
  if (reaches.length < 2) return [];
  const [first, ...others] = reaches;
  return [...first.stages]
    .map(([stage, items]) => /** @type {[number, number[]]} */ ([stage, items.filter((item) => others.every((other) => other.all.has(item)))]))
    .filter(([, items]) => items.length > 0);
}

export class ChainList {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.open = true;
    /** @type {ChainRow[]} */
    this.rows = [];
    this.name = "";
    /** Text of kernel lines, of code that has been read. @type {Map<number, string>} */
    this.texts = new Map();
    this.scrolled = false;
    this.toggle = button("", () => this.setOpen(!this.open), { class: "chain-toggle" });
    this.line = h("span", { class: "chain-line", dir: "auto" });
    this.copier = button("Copy as text", () => this.copy(), { class: "button chain-copy" });
    this.list = h("ol", { class: "chain-rows", "aria-label": "The chain, stage by stage" });
    this.element = h("div", { class: "chain-list" }, h("div", { class: "chain-head" }, this.toggle, this.line, this.copier), this.list);
    this.listen();
    this.setOpen(true);
  }

  listen() {
    const { selection } = this.app;
    /** @param {Event} event */
    const over = (event) => {
      const item = itemOf(event.target);
      if (item >= 0) selection.preview([item], this.app.model.name(item));
      else selection.preview([]);
    };
    this.list.addEventListener("scroll", () => (this.scrolled = this.list.scrollTop > 0), { passive: true });
    this.list.addEventListener("pointerover", over);
    this.list.addEventListener("focusin", over);
    this.list.addEventListener("pointerleave", () => selection.preview([]));
    this.list.addEventListener("focusout", () => selection.preview([]));
    this.list.addEventListener("click", (event) => {
      const item = itemOf(event.target);
      if (item >= 0) this.app.show(this.app.model.stageOf(item), [item]);
    });
  }

  /** @param {boolean} open */
  setOpen(open) {
    this.open = open;
    this.list.hidden = !open;
    this.toggle.textContent = open ? "▾ Chain" : "▸ Chain";
    this.toggle.setAttribute("aria-expanded", String(open));
  }

  /**
   * Shows the chain of a pin.
   * @param {Pin} pin
   * @param {Reach} reach
   */
  show(pin, reach) {
    this.name = pin.name;
    this.rows = chainRows(reach);
    const own = new Set(pin.items);
    this.line.textContent = chainInLine(this.app.model, this.rows);
    put(this.list, ...this.rows.map((row) => this.row(row, own)));
    // To set it where it is 0 anyway would lay out the page twice.
    if (this.scrolled) this.list.scrollTop = 0;
    this.readLoaded();
  }

  /** @param {ChainRow} row @param {Set<number>} own */
  row(row, own) {
    const title = h("span", { class: "chain-title" }, row.title);
    if (row.holds === "none") return h("li", { class: "chain-row chain-none" }, title, h("span", { class: "chain-why", dir: "auto" }, row.reason));
    const names = h("span", { class: row.holds === "python" || row.holds === "lines" ? "chain-items chain-lines" : "chain-items" });
    this.more(names, row, own, 0, CHAIN_FEW);
    return h("li", { class: "chain-row" }, title, names);
  }

  /**
   * @param {HTMLElement} place
   * @param {ChainRow} row
   * @param {Set<number>} own
   * @param {number} from
   * @param {number} count
   */
  more(place, row, own, from, count) {
    for (const item of row.items.slice(from, from + count)) place.append(this.item(row, item, own.has(item)));
    const left = row.items.length - from - count;
    if (left <= 0) return;
    const rest = button(`and ${grouped(left)} more`, () => {
      const at = place.children.length - 1;
      rest.remove();
      this.more(place, row, own, from + count, CHAIN_MORE);
      this.readLoaded();
      // The button that had the focus is gone: the first name that it brought takes it.
      const first = /** @type {HTMLElement | undefined} */ (place.children[at]);
      first?.focus();
    }, { class: "chain-rest" });
    place.append(rest);
  }

  /** @param {ChainRow} row @param {number} item @param {boolean} self */
  item(row, item, self) {
    const { model } = this.app;
    const name = model.name(item);
    const pinned = self ? " chain-self" : "";
    const properties = { type: "button", "data-item": item, title: shortened(name, 300), "aria-description": self ? "pinned" : null };
    if (row.holds === "python") {
      const text = model.index.lineTexts[item - model.index.stages[PYTHON].start] ?? "";
      return h("button", { ...properties, class: `chain-item chain-code${pinned}` }, h("bdi", { class: "chain-place" }, labelOf(model, item)), h("bdi", { class: "chain-text" }, shortened(text, 300)));
    }
    if (row.holds === "lines") {
      const colon = name.lastIndexOf(":");
      return h("button", { ...properties, class: `chain-item chain-code${pinned}` }, h("span", { class: "chain-place" }, name.slice(colon + 1)), h("bdi", { class: "chain-text" }, this.texts.get(item) ?? shortened(name.slice(0, colon), 80)));
    }
    return h("button", { ...properties, class: `chain-item${pinned}` }, h("bdi", {}, shortened(labelOf(model, item), 80)));
  }

  /** Puts in the text of kernel lines whose code has been read for a pane; reads none for this. */
  readLoaded() {
    const { model } = this.app;
    for (const row of this.rows) {
      if (row.holds !== "lines" || !model.payload.read.has(model.index.stages[row.stage].part)) continue;
      model.code(row.stage).then((code) => this.fillTexts(code), () => undefined);
    }
  }

  /** @param {CodeData} code */
  fillTexts(code) {
    for (const kernel of code.kernels) {
      const lines = kernel.source?.text.split("\n") ?? [];
      for (const [line, item] of kernel.items) this.texts.set(item, (lines[line - 1] ?? "").trim());
    }
    for (const element of this.list.querySelectorAll(".chain-code[data-item]")) {
      const text = this.texts.get(Number(element.getAttribute("data-item")));
      const place = element.querySelector(".chain-text");
      if (text !== undefined && place) place.textContent = shortened(text, 300);
    }
  }

  async copy() {
    const { model } = this.app;
    /** @param {number} item */
    const lineText = (item) => (model.stageOf(item) === PYTHON ? model.index.lineTexts[item - model.index.stages[PYTHON].start] : this.texts.get(item)) ?? "";
    const done = await copiedChain(chainAsText(model, this.name, this.rows, lineText), this.element);
    this.app.say(done ? `Copied the chain, ${plural(this.rows.length, "row")}` : "This page may not copy");
    this.copier.textContent = done ? "Copied" : "Not allowed here";
    setTimeout(() => (this.copier.textContent = "Copy as text"), 1500);
  }
}

/** @param {EventTarget | null} target */
function itemOf(target) {
  const element = target instanceof Element ? target.closest("[data-item]") : null;
  return element ? Number(element.getAttribute("data-item")) : -1;
}

/**
 * Copies a text. Pages without the right to the clipboard still have the older way, through a selection.
 * @param {string} text
 * @param {HTMLElement} near
 */
async function copiedChain(text, near) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const root = near.getRootNode();
    const focused = root instanceof ShadowRoot || root instanceof Document ? /** @type {HTMLElement | null} */ (root.activeElement) : null;
    const field = h("textarea", { class: "chain-clip", "aria-hidden": "true", tabindex: "-1" });
    field.value = text;
    near.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    focused?.focus();
    return done;
  }
}
