// The field that searches a graph: what it found, and the way from match to match.

import { button, grouped, h, put } from "../dom.js";

/** @import { NodeSearch } from "./search.js" */

/** Milliseconds that a large graph waits for the next letter. */
const LETTER_REST = 60;
/** Graphs with more nodes than this are large. */
const LARGE_GRAPH = 5000;

export class SearchBox {
  /**
   * @param {NodeSearch} search
   * @param {{ found: (locals: number[]) => void, go: (local: number) => string, leave: () => void }} tell `go` says
   *   what it went to; `leave` gives the focus back
   * @param {(sentence: string) => void} say
   */
  constructor(search, tell, say) {
    this.search = search;
    this.tell = tell;
    this.say = say;
    /** @type {number[]} */
    this.found = [];
    this.at = -1;
    this.query = "";
    this.timer = 0;
    this.input = h("input", {
      type: "search",
      class: "graph-query",
      placeholder: "find a node",
      "aria-label": "find nodes by name, operation, shape, dtype or module",
      title: "name, operation, shape, dtype or module; shape:8x16, module:attn, op:mm look in one place only",
      spellcheck: "false",
      autocomplete: "off",
      oninput: () => this.typed(),
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event),
    });
    this.count = h("span", { class: "graph-count" });
    this.steps = h(
      "span",
      { class: "graph-steps", hidden: true },
      button("↑", () => this.step(-1), { label: "previous match" }),
      button("↓", () => this.step(1), { label: "next match" }),
    );
    this.element = h(
      "span",
      { class: "graph-search", role: "search", "aria-label": "this graph" },
      this.input,
      this.count,
      this.steps,
    );
  }

  typed() {
    clearTimeout(this.timer);
    if (this.search.names.length > LARGE_GRAPH) this.timer = setTimeout(() => this.find(), LETTER_REST);
    else this.find();
  }

  find() {
    clearTimeout(this.timer);
    if (this.input.value === this.query) return;
    this.query = this.input.value;
    this.found = this.search.find(this.query);
    this.at = -1;
    this.tell.found(this.found);
    this.showCount();
    this.say(this.query.trim() ? (this.count.textContent ?? "") : "search cleared");
  }

  showCount() {
    const { length } = this.found;
    const total = grouped(length);
    const searching = this.query.trim() !== "";
    put(
      this.count,
      !searching ? "" : length === 0 ? "none" : this.at < 0 ? `${total} found` : `${grouped(this.at + 1)} of ${total}`,
    );
    this.steps.hidden = length === 0;
    this.input.dispatchEvent(new CustomEvent("found", { detail: [length, false] }));
  }

  /**
   * Goes to the next match or the one before; from the last one to the first.
   * @param {number} direction 1 or -1
   */
  step(direction) {
    this.find();
    const { length } = this.found;
    if (length === 0) return;
    this.at = this.at < 0 ? (direction > 0 ? 0 : length - 1) : (this.at + direction + length) % length;
    const where = this.tell.go(this.found[this.at]);
    this.showCount();
    this.say(`${this.count.textContent}: ${where}`);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.key === "Enter") {
      this.step(event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape" && this.input.value !== "") {
      this.input.value = "";
      this.find();
    } else if (event.key === "Escape") {
      this.tell.leave();
    } else return;
    event.preventDefault();
  }

  close() {
    clearTimeout(this.timer);
  }
}
