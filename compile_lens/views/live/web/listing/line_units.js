// The units of work of the lines of a listing, and the places of the calls in a line.

import { NARROW } from "./display.js";
import { rowsBelow, rowTags, tagsBelow } from "./unit_marks.js";

/** @import { Segment } from "../data/units.js" */
/** @import { Listing } from "./listing.js" */

/** Pixels for the names of calls below their line, and for each row of the tags of modules. */
export const CALL_NAMES = 20;

export class LineUnits {
  /** @param {Listing} listing */
  constructor(listing) {
    this.listing = listing;
    /** The units of each line (from 0) that has some. @type {Map<number, number[]>} */
    this.own = new Map();
    /** The places of the calls of a line. @type {Map<number, Segment[]>} */
    this.segments = new Map();
    /** The number of tags in each row below a line that runs several modules. @type {Map<number, number[]>} */
    this.below = new Map();
    this.read();
  }

  /** Finds the units of the lines, those of the compilation that is shown. */
  read() {
    const { content, links, app } = this.listing;
    this.own.clear();
    this.segments.clear();
    if (!content.coloured) return;
    const { units } = app.model;
    for (const [line, items] of links.items) {
      const own = units.ofAll(items, app.compilation);
      if (own.length === 0) continue;
      this.own.set(line - 1, own);
      const segments = content.calls ? units.segments(own) : [];
      if (segments.length) this.segments.set(line - 1, segments);
    }
    this.fit();
  }

  /** Finds how many tags there is room for below the lines that have several. Whether that is otherwise than before. */
  fit() {
    const { content, app, lines, width } = this.listing;
    const before = JSON.stringify([...this.below]);
    this.below.clear();
    for (const [line, own] of content.calls ? this.own : []) {
      if (own.length < 2 || this.segments.has(line)) continue;
      const text = lines.line(line);
      const names = own.map((unit) => app.model.units.all[unit].tag);
      this.below.set(line, rowsBelow(names, text.length - text.trimStart().length, width, width < NARROW));
    }
    return JSON.stringify([...this.below]) !== before;
  }

  /**
   * Pixels below the text of a line that names of its calls or modules take.
   * @param {number} line
   */
  room(line) {
    return CALL_NAMES * (this.segments.has(line) ? 1 : (this.below.get(line)?.length ?? 0));
  }

  /**
   * The tags below a line of the source, one for each module that it runs.
   * @param {number} line
   */
  names(line) {
    const rows = this.below.get(line);
    if (!rows) return null;
    const { lines, rows: drawn, app } = this.listing;
    const text = lines.line(line);
    const above = 1 + (drawn.wrap?.breaks.get(line)?.length ?? 0);
    return tagsBelow(app.model.units, this.own.get(line) ?? [], rows, text.length - text.trimStart().length, above);
  }

  /**
   * The tags of units at the end of a line of code. A line of the source is itself the unit, or has the
   * names of its calls and modules below it.
   * @param {number} line
   */
  tags(line) {
    const { content, app } = this.listing;
    const own = this.segments.has(line) || this.below.has(line) ? undefined : this.own.get(line);
    return own && (content.tagged || own.length > 1) ? rowTags(app.model.units, own) : [];
  }

  /**
   * Lines that are lit and came from several units: which of these are lit may have changed though the line's mark
   * did not.
   * @param {number[]} known lines that are painted anyway
   */
  shared(known) {
    const painted = new Set(known);
    return this.listing.links.lit.filter((line) => (this.own.get(line)?.length ?? 0) > 1 && !painted.has(line));
  }

  /**
   * Moves the focus to the next call of the row, or from the first one back to the row. False without calls.
   * @param {number} by 1 or -1
   * @param {number} unit that has the focus, -1 for the row
   */
  step(by, unit) {
    const { rows } = this.listing;
    const row = rows.rowElement(rows.active);
    const calls = [...(row?.querySelectorAll("[data-unit][tabindex]") ?? [])];
    if (!row || calls.length === 0) return false;
    const at = calls.findIndex((call) => Number(call.getAttribute("data-unit")) === unit) + by;
    const next = unit < 0 ? calls.at(by > 0 ? 0 : -1) : at < 0 ? row : calls[at];
    if (next instanceof HTMLElement) next.focus({ preventScroll: true });
    return true;
  }
}

/**
 * The number of the call that an event happened on, -1 for none.
 * @param {Event} event
 */
export function unitUnder(event) {
  const call = event.target instanceof Element ? event.target.closest("[data-unit]") : null;
  return call ? Number(call.getAttribute("data-unit")) : -1;
}
