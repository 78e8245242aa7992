// A text with line numbers whose lines stand for items: it folds, lights up and is searched.

import { labelOf } from "../data/reasons.js";
import { flash, h } from "../dom.js";
import { LineLinks } from "./line_links.js";
import { LineNotes } from "./line_notes.js";
import { LineUnits, unitUnder } from "./line_units.js";
import { Folds, Lines } from "./lines.js";
import { LINE_HEIGHT, ListingRows } from "./listing_rows.js";
import { shadesOf, ticksOf } from "./tints.js";

/** @import { App, Marks } from "../data/app.d.ts" */
/** @import { Fold, Text } from "../types.d.ts" */
/** @import { LineRange } from "./line_links.js" */
/** @import { Note } from "./line_notes.js" */

/** Characters of a line that are shown at first, where most lines are long, and those that a click adds. */
const LINE_CUT = { usual: 2000, many: 400, more: 50000 };
/** Matches of a search that are marked; changed lines beyond which all rows that are built are painted anew. */
const [MOST_MATCHES, MANY_LINES] = [10000, 2000];

/**
 * The content of a listing. Lines count from 1 in the text.
 * @typedef {object} ListingContent
 * @property {Text} text
 * @property {string} label what it is, for screen readers
 * @property {number} [first] the number that its first line bears
 * @property {Map<number, number[]>} [items] items that a line stands for
 * @property {LineRange[]} [ranges] lines that belong to an item as a whole
 * @property {Fold[]} [folds]
 * @property {Map<number, string>} [words] a remark behind a line
 * @property {Map<number, string>} [titles] tooltips
 * @property {Map<number, [number, string, string]>} [costs] of lines: share from 0 to 1, in percent, in words
 * @property {Map<number, string>} [signs] lines that a ≠ stands behind, and why
 * @property {Map<number, Note>} [notes] what happened at a line
 * @property {string} [unlinked] tooltip of lines without items
 * @property {boolean} [coloured] whether lines have the colours of the units that their items came from
 * @property {boolean} [tagged] and the tags of these at their end
 * @property {boolean} [calls] whether the calls in a line are told apart
 * @property {number} [height] pixels of a row
 * @property {HTMLElement} [viewport] what it scrolls in, if not in itself
 */

export class Listing {
  /**
   * @param {App} app
   * @param {ListingContent} content
   */
  constructor(app, content) {
    this.app = app;
    this.first = content.first ?? 1;
    /** Blanks that every line of tidied code begins with; -1 where code is shown as it is. */
    this.tidy = -1;
    /** Pixels that it was fitted to. */
    this.width = Infinity;
    this.height = content.height ?? LINE_HEIGHT;
    this.lines = new Lines(content.text);
    this.folds = new Folds(this.lines.count, content.folds ?? []);
    this.links = new LineLinks(this.lines.count, content.items ?? new Map(), content.ranges ?? []);
    /** @type {Map<number, string>} */
    this.words = content.words ?? new Map();
    /** @type {Map<number, string>} */
    this.titles = content.titles ?? new Map();
    this.unlinked = content.unlinked ?? "";
    /** The matches: where they start, their length, and the one that is shown. @type {{ starts: number[], length: number, current: number }} */
    this.found = { starts: [], length: 0, current: -1 };
    /** Pixels that it was scrolled sideways before the search; null while nothing is looked for. @type {number | null} */
    this.sideways = null;
    this.foldBits = new Uint16Array(this.folds.folds.length);
    const mean = this.lines.text.length / Math.max(1, this.lines.count);
    this.cut = mean > LINE_CUT.many ? LINE_CUT.many : LINE_CUT.usual;
    /** Characters shown of lines that were made longer. @type {Map<number, number>} */
    this.extended = new Map();
    this.content = content;
    this.coloured = new LineUnits(this);
    this.notes = new LineNotes(this);
    /** The row under the pointer, -1 for none; and the unit, if it is on a call. */
    this.over = -1;
    this.overUnit = -1;
    this.shading = false;
    /** True if the row with the focus is lit while the pointer is on none: it came there by keys, and no Escape since. */
    this.kept = false;
    /** The place where the pointer went down: who selects text does not click. */
    this.down = [0, 0];
    this.scale = h("div", { class: "listing-scale", "aria-hidden": "true" });
    this.rows = new ListingRows(this, content.viewport);
    this.shades = h("div", { "aria-hidden": "true" });
    this.rows.body.prepend(this.shades);
    this.element = h(
      "div",
      {
        class: content.viewport ? "listing grows" : "listing",
        role: "group",
        "aria-label": content.label,
        style: `--line:${this.height}px`,
      },
      this.lines.count ? this.rows.element : h("p", { class: "listing-empty" }, "no text"),
      this.scale,
    );
    this.listen();
    this.rows.arrange();
  }

  /** Another compilation is shown. */
  recolour() {
    this.coloured.read();
    this.rows.arrange();
  }

  listen() {
    const { element } = this;
    element.addEventListener("pointerover", (event) => this.hover(rowUnder(event), unitUnder(event)));
    element.addEventListener("pointerleave", () => this.hover(-1));
    element.addEventListener("pointerdown", (event) => {
      this.down = [event.clientX, event.clientY];
    });
    element.addEventListener("click", (event) => this.click(event));
    element.addEventListener("keydown", (event) => this.key(event));
    element.addEventListener("focusin", (event) => {
      const row = rowUnder(event);
      if (row < 0) return;
      this.rows.activate(row);
      this.kept = /** @type {Element} */ (event.target).matches(":focus-visible");
      if (this.kept) this.preview(row, unitUnder(event));
    });
    element.addEventListener("focusout", (event) => {
      if (this.over < 0) this.app.selection.left(event, element);
    });
  }

  /**
   * @param {number} row
   * @param {number} [unit] the call under the pointer
   */
  hover(row, unit = -1) {
    if (row === this.over && unit === this.overUnit) return;
    [this.over, this.overUnit] = [row, unit];
    this.preview(row < 0 && this.kept && this.rows.focused() ? this.rows.active : row, unit);
  }

  /**
   * @param {number} row
   * @param {number} [unit]
   */
  preview(row, unit = -1) {
    const call = this.app.model.units.all[unit];
    const items = call?.items ?? this.itemsAt(row);
    this.app.selection.preview(items, call?.tag ?? (items.length ? this.nameOf(items) : ""), this.element);
  }

  /** @param {number} row */
  itemsAt(row) {
    const line = row < 0 || row >= this.folds.rows ? -1 : this.folds.at(row).line;
    return line < 0 ? [] : this.links.itemsOf(line);
  }

  /** @param {number[]} items */
  nameOf(items) {
    const { model } = this.app;
    const name = labelOf(model, items[0]);
    return items.length === 1 ? name : `${name} and ${items.length - 1} more`;
  }

  /** @param {MouseEvent} event */
  click(event) {
    const row = rowUnder(event);
    if (row < 0) return;
    const { line, fold } = this.folds.at(row);
    if (fold >= 0) this.toggle(fold);
    else if (event.target instanceof Element && event.target.closest(".listing-more")) this.extend(line);
    else if (event.target instanceof Element && event.target.closest(".listing-note")) this.notes.click(line);
    else if (Math.hypot(event.clientX - this.down[0], event.clientY - this.down[1]) < 4)
      this.pin(row, unitUnder(event));
  }

  /**
   * @param {number} row
   * @param {number} [unit]
   */
  pin(row, unit = -1) {
    const call = this.app.model.units.all[unit];
    const items = call?.items ?? this.itemsAt(row);
    if (items.length) this.app.selection.toggle(items, call?.tag ?? this.nameOf(items));
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || rowUnder(event) < 0) return;
    if (event.key === "Escape") this.kept = false;
    const page = this.rows.page();
    /** @type {Record<string, number>} */
    const steps = { ArrowUp: -1, ArrowDown: 1, PageUp: -page, PageDown: page, Home: -Infinity, End: Infinity };
    const onLine = event.target instanceof HTMLDivElement;
    const unit = unitUnder(event);
    if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      if (!this.coloured.step(event.key === "ArrowRight" ? 1 : -1, unit)) return;
    } else if (unit >= 0 && (event.key === "Enter" || event.key === " ")) {
      this.pin(this.rows.active, unit);
    } else if (event.key in steps) {
      this.rows.focus(Math.max(0, Math.min(this.rows.active + steps[event.key], this.folds.rows - 1)));
    } else if (onLine && (event.key === "Enter" || event.key === " ")) {
      const { line } = this.folds.at(this.rows.active);
      this.notes.toggle(line);
      if (this.itemsAt(this.rows.active).length) this.pin(this.rows.active);
      else if (!this.notes.lead(line)) this.app.say(event.target.title || "the record links nothing to this line");
    } else {
      return;
    }
    event.preventDefault();
  }

  /**
   * The number of characters of a line that are shown.
   * @param {number} line
   */
  limit(line) {
    return this.extended.get(line) ?? this.cut;
  }

  /** @param {number} line */
  extend(line) {
    this.extended.set(line, this.limit(line) + LINE_CUT.more);
    this.refill(line);
    this.rows.focus(this.folds.row(line));
  }

  /** @param {number} line */
  refill(line) {
    const row = this.folds.row(line);
    if (this.folds.shows(line)) this.rows.blockOf(row)?.fill(row, line);
  }

  /**
   * Opens or closes a fold.
   * @param {number} fold
   */
  toggle(fold) {
    const focused = this.rows.focused();
    this.folds.set(fold, !this.folds.open[fold]);
    this.over = -1;
    this.rows.active = this.folds.foldRows[fold];
    this.rows.arrange();
    this.shade();
    if (focused) this.rows.focus(this.rows.active);
  }

  /**
   * Lights what is marked.
   * @param {Marks} marks
   */
  mark(marks) {
    const before = this.links.rangeBits.slice();
    const changed = this.links.light(marks);
    changed.push(...this.coloured.shared(changed));
    if (changed.length > MANY_LINES) {
      this.rows.paint();
    } else {
      for (const line of changed) {
        const row = this.folds.row(line);
        if (this.folds.shows(line)) this.rows.blockOf(row)?.paint(row);
      }
    }
    this.markFolds();
    if (changed.length || before.some((bits, i) => bits !== this.links.rangeBits[i])) this.shadeLater();
  }

  /** Once the rows that are lit have been painted. */
  shadeLater() {
    if (this.shading) return;
    this.shading = true;
    requestAnimationFrame(() => setTimeout(() => this.shade()));
  }

  /** A fold is lit by the lines in it. */
  markFolds() {
    if (this.foldBits.length === 0) return;
    const before = this.foldBits.slice();
    this.folds.folds.forEach(({ first, last }, fold) => {
      this.foldBits[fold] = 0;
      for (let line = first; line <= last; line++) this.foldBits[fold] |= this.links.bits[line];
    });
    this.foldBits.forEach((bits, fold) => {
      const row = this.folds.foldRows[fold];
      if (bits !== before[fold]) this.rows.blockOf(row)?.paint(row);
    });
  }

  /** Tints the ranges of lit items, and shows on the scale where lines are lit. */
  shade() {
    this.shading = false;
    this.shades.replaceChildren(...shadesOf(this));
    this.scale.replaceChildren(...ticksOf(this));
  }

  /**
   * Brings a line of the first of these items that has one into view. False if none has.
   * @param {number[]} items
   */
  reveal(items) {
    const item = items.find((one) => this.links.linesOf(one).length > 0);
    if (item === undefined) return false;
    const lines = this.links.linesOf(item);
    const view = this.rows.view();
    // What is in view stays where it is.
    this.showLine(
      lines.find((line) => this.folds.shows(line) && this.rows.sees(this.folds.row(line), view)) ?? lines[0],
    );
    return true;
  }

  /**
   * Brings a line (from 0) into view, out of its fold if need be; later, if there is no room now.
   * @param {number} line
   */
  showLine(line) {
    const fold = this.folds.foldOf(line);
    if (fold >= 0 && !this.folds.open[fold]) {
      this.folds.set(fold, true);
      this.rows.arrange();
      this.shade();
    }
    this.rows.wanted = this.rows.view() ? -1 : line;
    this.rows.bring(this.folds.row(line), 0.3);
  }

  /**
   * Moves the focus to a line, counted from 1.
   * @param {number} line
   */
  goTo(line) {
    this.showLine(line - 1);
    this.rows.focus(this.folds.row(line - 1));
    flash(this.rows.focused());
  }

  /**
   * Marks where a text occurs. Returns how often, and whether there are more matches than are marked.
   * @param {string} wanted
   */
  find(wanted) {
    const before = this.matchedLines();
    const { starts, more } = this.lines.find(wanted, MOST_MATCHES);
    this.found = { starts, length: wanted.length, current: -1 };
    for (const line of new Set([...before, ...this.matchedLines()])) this.refill(line);
    // Afterwards lines have their beginnings where they were.
    if (wanted) this.sideways ??= this.rows.element.scrollLeft;
    else if (this.sideways !== null) {
      this.rows.element.scrollLeft = this.sideways;
      this.sideways = null;
    }
    return { count: starts.length, more };
  }

  matchedLines() {
    return this.found.starts.map((start) => this.lines.at(start));
  }

  /**
   * Shows one of the matches; -1 for none.
   * @param {number} match
   */
  showMatch(match) {
    const { starts, length, current } = this.found;
    this.found.current = match;
    if (current >= 0) this.refill(this.lines.at(starts[current]));
    if (match < 0) return;
    const line = this.lines.at(starts[match]);
    const end = starts[match] + length - this.lines.start(line);
    if (end > this.limit(line) && end <= LINE_CUT.more) this.extended.set(line, end + this.cut);
    this.showLine(line);
    this.refill(line);
    const mark = this.rows.rowElement(this.folds.row(line))?.querySelector("mark.current");
    if (mark) this.rows.bringSideways(mark);
  }

  /** The first match from the top of the view on. */
  matchInView() {
    const view = this.rows.view();
    const match = this.found.starts.findIndex((start) => this.rows.sees(this.folds.row(this.lines.at(start)), view));
    return Math.max(0, match);
  }

  resized() {
    this.rows.resized();
  }

  close() {
    this.rows.close();
  }
}

/**
 * The row that an event happened on, -1 for none.
 * @param {Event} event
 */
function rowUnder(event) {
  const row = event.target instanceof Element ? event.target.closest("[data-row]") : null;
  return row instanceof HTMLElement ? Number(row.dataset.row) : -1;
}
