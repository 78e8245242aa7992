// Notes at lines of a source, a graph break or a failure: after the line, or below it where it is too long.

import { h } from "../dom.js";
import { COSTS, LETTER } from "./display.js";

/** @import { Listing } from "./listing.js" */

/**
 * @typedef {object} Note
 * @property {string} text
 * @property {string} title more of it; "" without
 * @property {string} [hint] what to do, below it
 * @property {string} [whole] all of that, once it was clicked
 * @property {number} [next] the compilation that a click shows: what follows a break; -1 for none
 * @property {boolean} [failed] whether it all stopped here; else it is a break
 * @property {number} [start] the first character of what it is about
 * @property {number} [end]
 */

/** Letters of a note and of its hint, and pixels from line to line of them. */
const LETTERS = "600 12px";
const HINT_LETTERS = "12px";
const STEP = 18;
/** Pixels between a line and a note below it, and at the right edge. */
const ABOVE = 6;
const RIGHT = 14;
/** Characters between a line and a note behind it, and the fewest pixels that a note below it is given. */
const BEFORE = 4;
const NARROWEST = 160;
/** Pixels beside the number of a line. */
const GUTTER = 26;

export class LineNotes {
  /** @param {Listing} listing */
  constructor(listing) {
    this.listing = listing;
    /** By line, counted from 1. @type {Map<number, Note>} */
    this.all = listing.content.notes ?? new Map();
    /** Pixels that the notes below their lines take, by line, counted from 0. @type {Map<number, number>} */
    this.below = new Map();
    /** Lines whose notes were opened, counted from 0. @type {Set<number>} */
    this.open = new Set();
  }

  /** Shows all of what is advised at a line, or its beginning. @param {number} line counted from 0 */
  toggle(line) {
    if (!this.all.get(line + 1)?.whole) return;
    if (!this.open.delete(line)) this.open.add(line);
    if (this.fit(this.listing.rows.element.clientWidth)) this.listing.rows.arrange();
  }

  /** @param {number} line counted from 0 */
  click(line) {
    this.toggle(line);
    this.lead(line);
  }

  /**
   * Shows the compilation that follows a break, as its row in the table does. False if there is none.
   * @param {number} line counted from 0
   */
  lead(line) {
    const { next = -1 } = this.all.get(line + 1) ?? {};
    if (next >= 0) this.listing.app.choose(next);
    return next >= 0;
  }

  /** The advice at a line, as far as it is shown. @param {number} line counted from 0 */
  hint(line) {
    const { hint, whole } = this.all.get(line + 1) ?? {};
    return (this.open.has(line) && whole) || hint;
  }

  /**
   * Finds which notes stand below their lines. Whether they stand otherwise than before.
   * @param {number} width pixels of the listing
   */
  fit(width) {
    if (this.all.size === 0 || width <= 0) return false;
    const { element, lines, first } = this.listing;
    element.style.setProperty("--box", `${width}px`);
    const letter = LETTER * (Number.parseFloat(element.style.getPropertyValue("--size")) || 13);
    const before = [...this.below].join();
    const costs = element.classList.contains("costs") ? COSTS : 0;
    const number = String(first + lines.count - 1).length * letter + GUTTER + costs;
    const sans = getComputedStyle(element).getPropertyValue("--sans");
    const [words, hintWords] = [LETTERS, HINT_LETTERS].map((letters) => measure(`${letters} ${sans}`));
    this.below.clear();
    for (const [at, { text, failed }] of this.all) {
      const line = at - 1;
      const hint = this.hint(line);
      const behind = width - number - (lines.length(line) - this.outdent() + BEFORE) * letter - RIGHT;
      if (!failed && !hint && rowsOf(words(text), behind) === 1) continue;
      const room = Math.max(NARROWEST, width - number - (this.start(line) - this.outdent()) * letter - RIGHT);
      const rows = rowsOf(words(text), room) + (hint ? rowsOf(hintWords(hint), room) : 0);
      this.below.set(line, ABOVE + STEP * rows);
    }
    return before !== [...this.below].join();
  }

  /**
   * The note of a line, and the mark of what it is about.
   * @param {number} line counted from 0
   */
  elements(line) {
    const note = this.all.get(line + 1);
    if (!note) return [];
    const below = this.below.has(line);
    const hint = this.hint(line);
    const look = `listing-note${below ? " below" : ""}${note.failed ? " failed" : ""}${note.whole || (note.next ?? -1) >= 0 ? " more" : ""}`;
    const names = this.listing.coloured.room(line);
    const text = h("span", { class: "listing-note-text", title: note.title || null }, note.text);
    const element = h(
      "span",
      { class: look, style: below ? `--start:${this.start(line)};--names:${names}px` : null },
      text,
      hint ? h("span", { class: "listing-hint" }, hint) : null,
    );
    const fault = this.fault(line, note);
    return fault ? [fault, element] : [element];
  }

  /**
   * The mark of an expression that failed.
   * @param {number} line counted from 0
   * @param {Note} note
   */
  fault(line, { failed, start, end }) {
    if (!failed || start === undefined || end === undefined || end <= start) return null;
    const last = Math.min(end, this.listing.lines.length(line));
    return h("span", {
      class: "listing-fault",
      style: `--start:${start};--length:${last - start}`,
      "aria-hidden": "true",
    });
  }

  /** Blanks that every line is shown without. */
  outdent() {
    return Number(this.listing.element.style.getPropertyValue("--outdent")) || 0;
  }

  /**
   * The first character of what a note is about.
   * @param {number} line
   */
  start(line) {
    const text = this.listing.lines.line(line);
    return this.all.get(line + 1)?.start ?? text.length - text.trimStart().length;
  }
}

/**
 * The widths of the words of a text, and of a blank.
 * @param {string} font
 */
function measure(font) {
  const paper = document.createElement("canvas").getContext("2d");
  if (paper) paper.font = font;
  const wide = (/** @type {string} */ text) => paper?.measureText(text).width ?? text.length * STEP;
  return (/** @type {string} */ text) => ({ words: text.split(/\s+/).map(wide), blank: wide(" ") });
}

/**
 * The number of lines that words take: a line may end with a word, without a blank.
 * @param {{ words: number[], blank: number }} text pixels
 * @param {number} room pixels of a line
 */
export function rowsOf({ words, blank }, room) {
  let rows = 1;
  let used = 0;
  for (const word of words) {
    // A word that is longer than a line is cut where that ends.
    if (used > 0 && used + word > room) {
      rows += 1;
      used = 0;
    }
    rows += Math.max(0, Math.ceil(word / room) - 1);
    used += (word > room ? word % room : word) + blank;
  }
  return rows;
}
