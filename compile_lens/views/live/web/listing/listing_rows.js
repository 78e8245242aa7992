// The rows of a listing, built in blocks where they are seen; where it scrolls, and which row the keyboard is on.

import { h } from "../dom.js";
import { BLOCK_ROWS, ListingBlock } from "./listing_block.js";

/** @import { Listing } from "./listing.js" */

/**
 * Breaks lines (from 0) that are too long: at which characters, and how many pixels that takes.
 * @typedef {object} Wrapping
 * @property {Map<number, number[]>} breaks
 * @property {(line: number) => number} more
 * @property {(element: HTMLElement, line: number) => void} apply
 * @property {(line: number, at: number) => void} show
 * @property {(width: number) => void} fit
 */

/** Pixels of a row, where nothing else is said. */
export const LINE_HEIGHT = 18;

/** Texts of at most this many rows are built whole, so that the browser's own search finds them. */
const WHOLE_ROWS = 1000;

/** Pixels beyond the view that are built as well. */
const BEYOND = 600;

export class ListingRows {
  /**
   * @param {Listing} listing
   * @param {HTMLElement | undefined} viewport what it scrolls in, if not in itself
   */
  constructor(listing, viewport) {
    this.listing = listing;
    /** Pixels of a row. */
    this.height = listing.height;
    /** Rows that are taller than the others, and by how many pixels. @type {Map<number, number>} */
    this.taller = new Map();
    const digits = String(listing.first + listing.lines.count - 1).length;
    let remark = 0;
    for (const word of listing.words.values()) remark = Math.max(remark, word.length + 4);
    // Lines that stand further left than they are written end there as well.
    const width = `(${listing.lines.widest(listing.cut) + remark + digits} - var(--outdent, 0)) * 1ch + 64px`;
    this.body = h("div", { class: "listing-body", style: `--digits:${digits};min-width:max(100%, calc(${width}))` });
    this.element = h("div", { class: "listing-box" }, this.body);
    this.viewport = viewport ?? this.element;
    /** Breaks lines that are too long. @type {Wrapping | null} */
    this.wrap = null;
    /** @type {Map<number, ListingBlock>} */
    this.blocks = new Map();
    /** The row that is the listing's tab stop. */
    this.active = 0;
    this.place = { top: 0, left: 0 };
    /** Pixels of its width. */
    this.wide = 0;
    /** A line to show once there is room. */
    this.wanted = -1;
    this.frame = 0;
    this.timer = 0;
    this.scrolled = () => {
      if (this.element.clientHeight) this.place = { top: this.element.scrollTop, left: this.element.scrollLeft };
      if (!this.frame) this.frame = requestAnimationFrame(() => this.render());
    };
    this.viewport.addEventListener("scroll", this.scrolled, { passive: true });
    if (viewport) this.element.addEventListener("scroll", this.scrolled, { passive: true });
    this.observer = new ResizeObserver(() => this.resized());
    this.observer.observe(this.element);
  }

  /**
   * The top of a row, in pixels.
   * @param {number} row
   */
  top(row) {
    let top = row * this.height;
    for (const [other, more] of this.taller) if (other < row) top += more;
    return top;
  }

  /**
   * The row at a place.
   * @param {number} pixels
   */
  at(pixels) {
    let beyond = 0;
    for (const [row, more] of this.taller) if (pixels > this.top(row + 1)) beyond += more;
    return (pixels - beyond) / this.height;
  }

  /** Finds the rows that have something below their text: the names of calls or modules, a note. */
  measure() {
    const { coloured, folds, notes } = this.listing;
    const { wrap } = this;
    this.taller.clear();
    const { segments, below } = coloured;
    const lines = [segments, below, notes.below, wrap?.breaks ?? []].flatMap((one) => [...one.keys()]);
    for (const line of new Set(lines)) {
      if (!folds.shows(line)) continue;
      this.taller.set(folds.row(line), coloured.room(line) + (notes.below.get(line) ?? 0) + (wrap?.more(line) ?? 0));
    }
  }

  /** The visible part of the body in pixels; null while there is no room. */
  view() {
    const frame = this.viewport.getBoundingClientRect();
    if (frame.height === 0) return null;
    const top = frame.top - this.body.getBoundingClientRect().top;
    return { top, bottom: top + this.viewport.clientHeight };
  }

  /**
   * True if a row is in view.
   * @param {number} row
   * @param {{ top: number, bottom: number } | null} [view]
   */
  sees(row, view = this.view()) {
    return view !== null && this.top(row) >= view.top && this.top(row + 1) <= view.bottom;
  }

  /** Builds anew after rows came or went. */
  arrange() {
    this.measure();
    for (const block of this.blocks.values()) block.element.remove();
    this.blocks.clear();
    this.active = Math.max(0, Math.min(this.active, this.listing.folds.rows - 1));
    this.body.dataset.rows = String(this.listing.folds.rows);
    this.body.style.height = `${this.top(this.listing.folds.rows)}px`;
    this.render();
  }

  /** Builds the blocks in view and near it, and lets go of those far from it. */
  render() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    const view = this.view();
    const { rows } = this.listing.folds;
    if (!view || rows === 0) return;
    this.listing.scale.hidden = this.top(rows) <= view.bottom - view.top;
    const count = Math.ceil(rows / BLOCK_ROWS);
    const from = Math.max(0, Math.floor(this.at(view.top - BEYOND) / BLOCK_ROWS));
    const to = Math.min(count - 1, Math.floor(this.at(view.bottom + BEYOND) / BLOCK_ROWS));
    // Who tabs into the listing should arrive where it is scrolled to.
    if (!this.sees(this.active, view) && !this.focused()) {
      this.activate(Math.max(0, Math.min(Math.ceil(this.at(view.top)), rows - 1)));
    }
    const block = Math.floor(this.active / BLOCK_ROWS);
    for (let number = from; number <= to; number++) this.block(number);
    this.block(block);
    if (rows <= WHOLE_ROWS) this.buildRest(count);
    else this.drop((number) => number !== block && (number < from - 2 || number > to + 2));
    this.activate(this.active);
  }

  /** @param {number} number */
  block(number) {
    if (this.blocks.has(number)) return;
    const block = new ListingBlock(this.listing, number);
    // In the order of the text, for who selects or reads it.
    let after = null;
    let least = Infinity;
    for (const [other, { element }] of this.blocks) {
      if (other > number && other < least) [least, after] = [other, element];
    }
    this.blocks.set(number, block);
    this.body.insertBefore(block.element, after);
  }

  /** @param {(number: number) => boolean} far */
  drop(far) {
    for (const [number, block] of this.blocks) {
      if (!far(number)) continue;
      block.element.remove();
      this.blocks.delete(number);
    }
  }

  /**
   * Builds the rest of a short text, a block at a time.
   * @param {number} count of blocks
   */
  buildRest(count) {
    clearTimeout(this.timer);
    let next = 0;
    while (next < count && this.blocks.has(next)) next += 1;
    if (next === count) return;
    this.timer = setTimeout(() => {
      this.block(next);
      this.buildRest(count);
    });
  }

  /**
   * The block that holds a row, if it is built.
   * @param {number} row
   */
  blockOf(row) {
    return this.blocks.get(Math.floor(row / BLOCK_ROWS));
  }

  /** Gives every row that is built the look of its mark. */
  paint() {
    for (const block of this.blocks.values()) {
      for (let row = block.first; row <= block.last; row++) block.paint(row);
    }
  }

  /** @param {number} row */
  rowElement(row) {
    const block = this.blockOf(row);
    return block?.codes[row - block.first];
  }

  /**
   * Makes a row the tab stop.
   * @param {number} row
   */
  activate(row) {
    const old = this.rowElement(this.active);
    if (old) old.tabIndex = -1;
    this.active = row;
    const element = this.rowElement(row);
    if (element) element.tabIndex = 0;
  }

  /**
   * Moves the focus to a row.
   * @param {number} row
   */
  focus(row) {
    this.bring(row, 0);
    this.block(Math.floor(row / BLOCK_ROWS));
    this.activate(row);
    this.rowElement(row)?.focus({ preventScroll: true });
  }

  /** The element inside that has the focus. */
  focused() {
    const root = this.element.getRootNode();
    const active = root instanceof ShadowRoot || root instanceof Document ? root.activeElement : null;
    return active && this.element.contains(active) ? active : null;
  }

  /** The number of rows of a page. */
  page() {
    return Math.max(1, Math.floor(this.viewport.clientHeight / this.height) - 2);
  }

  /**
   * Scrolls a row into view if it is outside, to a share of the height; 0, or a row that is seen in part, scrolls as
   * little as possible.
   * @param {number} row
   * @param {number} share
   */
  bring(row, share) {
    const view = this.view();
    if (!view) return;
    const top = this.top(row);
    const height = view.bottom - view.top;
    // Around the listing there may be a heading that stays in view.
    const margin = Math.min(this.viewport === this.element ? this.height : 3 * this.height, height / 4);
    const above = top < view.top + margin;
    if (!above && top + this.height <= view.bottom - margin) return;
    // One that is seen in part, or was just clicked, does not jump.
    const near = share === 0 || (top < view.bottom && top + this.height > view.top);
    const room = near ? (above ? margin : height - this.height - margin) : height * share;
    this.viewport.scrollTop += top - view.top - room;
    this.render();
  }

  /**
   * Scrolls sideways until an element of a row is in view.
   * @param {Element} part
   */
  bringSideways(part) {
    const place = part.getBoundingClientRect();
    const frame = this.element.getBoundingClientRect();
    // Tags cover the end of a long line.
    const tags = part.closest(".listing-line")?.querySelector(".tags");
    const right = tags ? tags.getBoundingClientRect().left : frame.right - 20;
    if (place.left >= frame.left + 60 && place.right <= right) return;
    // Lines are read from their start: only what is far to the right leaves it.
    const from = place.left - frame.left + this.element.scrollLeft;
    const room = right - frame.left;
    this.element.scrollLeft = from < room * 0.7 ? 0 : from - room / 2;
  }

  resized() {
    if (!this.view()) return;
    if (this.listing.notes.fit(this.element.clientWidth)) this.arrange();
    // With other room lines are read from their start again.
    if (Math.abs(this.element.clientWidth - this.wide) > 40) this.place.left = 0;
    this.wide = this.element.clientWidth;
    // A browser may forget where an element was scrolled to while it was out of the page.
    const { top, left } = this.place;
    if (this.element.scrollTop !== top || this.element.scrollLeft !== left) this.element.scrollTo(left, top);
    this.render();
    if (this.wanted >= 0) this.listing.showLine(this.wanted);
  }

  close() {
    this.observer.disconnect();
    this.viewport.removeEventListener("scroll", this.scrolled);
    cancelAnimationFrame(this.frame);
    clearTimeout(this.timer);
  }
}
