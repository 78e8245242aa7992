// A pinned chain as text, a row for each stage: Python line → … → kernel → line of the kernel.

import { PYTHON } from "../data/model.js";
import { labelOf } from "../data/reasons.js";
import { button, copied, grouped, h, itemOf, plural, put, shortened } from "../dom.js";
import { chainAsText, chainInLine, chainRows } from "./chain_rows.js";

/** @import { App, Pin } from "../data/app.d.ts" */
/** @import { Reach } from "../data/reasons.js" */
/** @import { CodeData } from "../types.d.ts" */
/** @import { ChainRow } from "./chain_rows.js" */

/** So many names of a row are shown at first, and so many more at each step. */
const CHAIN_FEW = 12;
const CHAIN_MORE = 200;

export class ChainList {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.open = true;
    /** @type {ChainRow[]} */
    this.rows = [];
    /** The text that is copied of it, and its address. */
    this.named = "";
    /** Text of kernel lines, of code that has been read. @type {Map<number, string>} */
    this.texts = new Map();
    this.scrolled = false;
    this.toggle = button("", () => this.setOpen(!this.open), { class: "chain-toggle" });
    this.line = h("span", { class: "chain-line", dir: "auto" });
    this.copier = button("Copy as text", () => this.copy(), { class: "button chain-copy" });
    this.list = h("ol", { class: "chain-rows", "aria-label": "The chain, stage by stage" });
    this.element = h(
      "div",
      { class: "chain-list" },
      h("div", { class: "chain-head" }, this.toggle, this.line, this.copier),
      this.list,
    );
    this.listen();
    this.setOpen(true);
  }

  listen() {
    const { selection } = this.app;
    /** @param {Event} event */
    const over = (event) => {
      const item = itemOf(event.target);
      if (item >= 0) selection.preview([item], this.app.model.name(item), this.list);
      else selection.preview([]);
    };
    this.list.addEventListener("scroll", () => (this.scrolled = this.list.scrollTop > 0), { passive: true });
    this.list.addEventListener("pointerover", over);
    this.list.addEventListener("focusin", over);
    this.list.addEventListener("pointerleave", () => selection.preview([]));
    this.list.addEventListener("focusout", (event) => selection.left(event, this.list));
    this.list.addEventListener("click", (event) => {
      const item = itemOf(event.target);
      if (item >= 0) this.app.show(this.app.model.stageOf(item), [item]);
    });
  }

  /**
   * Brings the row of a stage into view, the first of several.
   * @param {number} stage
   */
  showStage(stage) {
    this.setOpen(true);
    const at = this.rows.findIndex((row) => row.stage === stage && row.holds !== "none");
    const row = this.list.children[at];
    for (const one of this.list.children) one.classList.toggle("chain-wanted", one === row);
    row?.scrollIntoView({ block: "nearest" });
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
    const address = this.app.model.address(pin.items);
    this.named = pin.name + (address ? `, in Python ${address}` : "");
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
    if (row.holds === "none")
      return h(
        "li",
        { class: "chain-row chain-none" },
        title,
        h("span", { class: "chain-why", dir: "auto" }, row.reason),
      );
    const names = h("span", {
      class: row.holds === "python" || row.holds === "lines" ? "chain-items chain-lines" : "chain-items",
    });
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
    const rest = button(
      `and ${grouped(left)} more`,
      () => {
        const at = place.children.length - 1;
        rest.remove();
        this.more(place, row, own, from + count, CHAIN_MORE);
        this.readLoaded();
        // The button that had the focus is gone: the first name that it brought takes it.
        const first = /** @type {HTMLElement | undefined} */ (place.children[at]);
        first?.focus();
      },
      { class: "chain-rest" },
    );
    place.append(rest);
  }

  /** @param {ChainRow} row @param {number} item @param {boolean} self */
  item(row, item, self) {
    const { model } = this.app;
    const name = labelOf(model, item);
    const pinned = self ? " chain-self" : "";
    const properties = {
      type: "button",
      "data-item": item,
      title: shortened(row.holds === "python" ? model.name(item) : name, 300),
      "aria-description": self ? "pinned" : null,
    };
    if (row.holds === "python") {
      const text = model.index.lineTexts[item - model.index.stages[PYTHON].start] ?? "";
      return h(
        "button",
        { ...properties, class: `chain-item chain-code${pinned}` },
        h("bdi", { class: "chain-place" }, labelOf(model, item)),
        h("bdi", { class: "chain-text" }, shortened(text, 300)),
      );
    }
    if (row.holds === "lines") {
      const colon = name.lastIndexOf(":");
      return h(
        "button",
        { ...properties, class: `chain-item chain-code${pinned}` },
        h("span", { class: "chain-place" }, String(model.lineNumber(item))),
        h("bdi", { class: "chain-text" }, this.texts.get(item) ?? shortened(name.slice(0, colon), 80)),
      );
    }
    return h(
      "button",
      { ...properties, class: `chain-item${pinned}` },
      h("bdi", {}, shortened(labelOf(model, item), 80)),
    );
  }

  /** Puts in the text of kernel lines whose code has been read for a pane; reads none for this. */
  readLoaded() {
    const { model } = this.app;
    for (const row of this.rows) {
      if (row.holds !== "lines" || !model.payload.read.has(model.index.stages[row.stage].part)) continue;
      model.code(row.stage).then(
        (code) => this.fillTexts(code),
        () => undefined,
      );
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
    // Of panes that are closed as well: each line goes with its code.
    const stages = new Set(this.rows.filter(({ holds }) => holds === "lines").map(({ stage }) => stage));
    for (const code of await Promise.all([...stages].map((stage) => model.code(stage)))) this.fillTexts(code);
    /** @param {number} item */
    const lineText = (item) =>
      (model.stageOf(item) === PYTHON
        ? model.index.lineTexts[item - model.index.stages[PYTHON].start]
        : this.texts.get(item)) ?? "";
    const done = await copied(chainAsText(model, this.named, this.rows, lineText), this.element);
    this.app.say(done ? `Copied the chain, ${plural(this.rows.length, "row")}` : "This page may not copy");
    this.copier.textContent = done ? "Copied" : "Not allowed here";
    setTimeout(() => (this.copier.textContent = "Copy as text"), 1500);
  }
}
