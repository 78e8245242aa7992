// Lines that are longer than their pane is wide, broken so that their ends are in view.

import { h } from "../dom.js";
import { BESIDE, LETTER } from "./display.js";
import { CALL_NAMES } from "./line_units.js";
import { TAG_SCALE } from "./unit_marks.js";

/** @import { Listing } from "./listing.js" */

/** Blanks that the rest of a line is indented by, beyond its beginning. */
const HANG = 4;
/** Share of a row that is left empty at most, so that a break comes behind a comma or a bracket. */
const LEAST = 0.55;

/**
 * Characters at which a line is broken so that no row is longer than so many, and the blanks that all but the first
 * begin with.
 * @param {string} text
 * @param {number} columns of a row
 * @param {number} outdent blanks at its beginning that are not shown, which `columns` counts
 * @param {number[]} calls characters at which calls begin or end: breaks are there, as far as they can
 * @returns {{ breaks: number[], hang: number }}
 */
export function breaksOf(text, columns, outdent = 0, calls = []) {
  const blanks = text.length - text.trimStart().length;
  const shown = Math.max(12, columns);
  // Half of a row at least is the line's own.
  const hang = Math.min(blanks + HANG, outdent + Math.floor((shown - outdent) / 2));
  /** @type {number[]} */
  const breaks = [];
  let start = 0;
  let room = shown;
  while (text.trimEnd().length - start > room) {
    const [least, most] = [start + room * LEAST, start + room];
    const call = Math.max(0, ...calls.filter((end) => end > least && end <= most));
    const at =
      call ||
      behind(text, /\s/, least, most) ||
      behind(text, /[,([{=]/, least, most) ||
      behind(text, /[:>]/, least, most) ||
      most;
    breaks.push(at);
    start = at;
    room = shown - hang;
  }
  return { breaks, hang };
}

/**
 * The last place behind a character of a kind and before what is no blank; 0 for none.
 * @param {string} text
 * @param {RegExp} kind
 * @param {number} least
 * @param {number} most
 */
function behind(text, kind, least, most) {
  for (let at = most; at > least; at--) if (kind.test(text[at - 1]) && /\S/.test(text[at] ?? "")) return at;
  return 0;
}

/** Pixels of a row, and its letters, where lines are broken. */
const DENSE = { height: 18, size: "12px" };

/**
 * Breaks the lines of some listings that are longer than a width.
 * @param {Listing[]} listings
 * @param {number} width pixels
 */
export function wrapAll(listings, width) {
  for (const listing of listings) {
    listing.rows.wrap ??= new Wrap(listing);
    listing.rows.wrap.fit(width);
  }
}

export class Wrap {
  /** @param {Listing} listing */
  constructor(listing) {
    this.listing = listing;
    /** Characters at which the lines (from 0) that are too long are broken. @type {Map<number, number[]>} */
    this.breaks = new Map();
    /** Blanks that the rest of each begins with. @type {Map<number, number>} */
    this.hangs = new Map();
    /** The wraps that are on the page. */
    this.drawn = "";
    listing.rows.body.style.minWidth = "100%";
  }

  /** @param {number} width */
  fit(width) {
    const { lines, first, rows, element, coloured } = this.listing;
    const outdent = Number(element.style.getPropertyValue("--outdent")) || 0;
    // Small letters and low rows: what is broken has several of them.
    if (!element.classList.contains("fits")) {
      this.listing.height = rows.height = DENSE.height;
      element.style.setProperty("--line", `${DENSE.height}px`);
      element.style.setProperty("--size", DENSE.size);
      element.classList.add("fits");
    }
    const size = Number.parseFloat(element.style.getPropertyValue("--size"));
    const columns = Math.floor((width - BESIDE) / (size * LETTER)) - String(first + lines.count - 1).length;
    this.set(size, (line) => {
      const calls = (coloured.segments.get(line) ?? []).flatMap(({ start, end }) => [start, end]);
      return breaksOf(lines.line(line), columns + outdent, outdent, calls);
    });
  }

  /**
   * Breaks each line anew.
   * @param {number} size pixels of its letters
   * @param {(line: number) => { breaks: number[], hang: number }} breaksIn
   */
  set(size, breaksIn) {
    this.breaks.clear();
    this.hangs.clear();
    for (let line = 0; line < this.listing.lines.count; line++) {
      const { breaks, hang } = breaksIn(line);
      if (breaks.length === 0) continue;
      this.breaks.set(line, breaks);
      this.hangs.set(line, hang);
    }
    const drawn = JSON.stringify([size, ...this.breaks]);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    this.listing.rows.arrange();
  }

  /**
   * Pixels of each row of a line.
   * @param {number} line
   */
  step(line) {
    return this.listing.height + (this.listing.coloured.segments.has(line) ? CALL_NAMES : 0);
  }

  /**
   * Pixels that a line has below its first row.
   * @param {number} line
   */
  more(line) {
    return (this.breaks.get(line)?.length ?? 0) * this.step(line);
  }

  /**
   * Scrolls to the row of a line that holds a character.
   * @param {number} line
   * @param {number} at
   */
  show(line, at) {
    const { rows, folds } = this.listing;
    const view = rows.view();
    const step = this.step(line);
    const above = (this.breaks.get(line) ?? []).filter((end) => end <= at).length;
    const top = rows.top(folds.row(line)) + above * step;
    if (!view) return;
    if (top + step > view.bottom) rows.viewport.scrollTop += top + step - view.bottom + 2;
    else if (top < view.top) rows.viewport.scrollTop += top - view.top;
    rows.render();
  }

  /**
   * Breaks a line that is on the page.
   * @param {HTMLElement} element
   * @param {number} line
   */
  apply(element, line) {
    const breaks = this.breaks.get(line);
    if (!breaks) return;
    const hang = this.hangs.get(line) ?? 0;
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    /** @type {Text[]} */
    const texts = [];
    while (walker.nextNode()) texts.push(/** @type {Text} */ (walker.currentNode));
    const left = [...breaks];
    let at = 0;
    for (let text of texts) {
      while (left.length && left[0] < at + text.length) {
        const rest = text.splitText(left[0] - at);
        at = left[0];
        left.shift();
        // Before the call that begins here, not in it.
        /** @type {ChildNode} */
        let next = rest;
        if (!text.data) text.remove();
        while (next.parentElement && next.parentElement !== element && !next.previousSibling) next = next.parentElement;
        // Written by the style sheet: it is no part of the text, and no one copies it.
        next.before(h("span", { class: "wrap", "aria-hidden": "true", style: `--hang:${hang}ch` }));
        text = rest;
      }
      at += text.length;
    }
    this.placeNames(element, line, [0, ...breaks, Infinity], hang);
  }

  /**
   * The names of calls stand below the row that their call is in.
   * @param {HTMLElement} element
   * @param {number} line
   * @param {number[]} ends of the rows
   * @param {number} hang
   */
  placeNames(element, line, ends, hang) {
    const segments = this.listing.coloured.segments.get(line);
    const names = element.querySelector(".call-names");
    if (!segments || !names) return;
    const { units } = this.listing.app.model;
    const known = new Map([...names.children].map((one) => [Number(one.getAttribute("data-unit")), one]));
    const step = this.step(line);
    const placed = new Set();
    for (let row = 0; row + 1 < ends.length; row++) {
      const shift = row ? ends[row] - hang : 0;
      const here = segments
        .map(({ start, end, unit }) => ({
          unit,
          start: Math.max(start, ends[row]) - shift,
          end: Math.min(end, ends[row + 1]) - shift,
        }))
        .filter(({ start, end, unit }) => start < end && !placed.has(unit));
      for (const { unit, at } of units.places(here, TAG_SCALE)) {
        placed.add(unit);
        const name = known.get(unit);
        if (name instanceof HTMLElement) {
          name.style.left = `${at / TAG_SCALE}ch`;
          name.style.top = `${row * step + 3}px`;
        }
      }
    }
  }
}
