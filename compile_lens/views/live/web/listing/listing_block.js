// A block of neighbouring rows of a listing: numbers in one column, code in the other.

import { coloursOf, HOVER, isNeeded, SELF } from "../data/selection.js";
import { lookOf } from "../data/units.js";
import { h, plural, shortened } from "../dom.js";
import { withMatches } from "./lines.js";
import { NARROWEST } from "./display.js";
import { cuts, hides, without } from "./abbreviations.js";
import { byCall, callNames, rowColours, signTag } from "./unit_marks.js";

/** @import { LinePiece } from "./lines.js" */
/** @import { Listing } from "./listing.js" */

/** Rows of a block: few enough that a frame has time to build one. */
export const BLOCK_ROWS = 50;

/** Characters of a line that are coloured; a browser is slow to lay out ten thousands of pieces in one line. */
const MOST_COLOURED = 4000;

export class ListingBlock {
  /**
   * @param {Listing} listing
   * @param {number} number of the block
   */
  constructor(listing, number) {
    this.listing = listing;
    this.first = number * BLOCK_ROWS;
    this.last = Math.min(listing.folds.rows, this.first + BLOCK_ROWS) - 1;
    /** @type {HTMLElement[]} */
    this.numbers = [];
    /** @type {HTMLElement[]} */
    this.codes = [];
    for (let row = this.first; row <= this.last; row++) this.add(row);
    this.element = h(
      "div",
      { class: "listing-block", style: `top:${listing.rows.top(this.first)}px` },
      h("div", { class: "listing-numbers", "aria-hidden": "true" }, this.numbers),
      h("div", { class: "listing-code" }, this.codes),
    );
  }

  /** @param {number} row */
  add(row) {
    const { folds, links, first, titles, unlinked } = this.listing;
    const { line, fold } = folds.at(row);
    const number = document.createElement("div");
    number.dataset.row = String(row);
    this.numbers.push(number);
    if (fold >= 0) {
      const code = this.foldRow(fold);
      code.dataset.row = String(row);
      code.tabIndex = -1;
      this.codes.push(code);
    } else {
      const code = document.createElement("div");
      const items = links.itemsOf(line);
      code.dataset.row = String(row);
      code.tabIndex = -1;
      if (items.length) code.dataset.item = String(items[0]);
      const title =
        titles.get(line + 1) ??
        (this.listing.coloured.own.has(line) ? this.listing.words.get(line + 1) : undefined) ??
        (items.length === 0 && unlinked && this.listing.lines.line(line).trim() ? unlinked : "");
      if (title) code.title = title;
      number.dataset.number = String(first + line);
      const cost = this.listing.content.costs?.get(line + 1);
      if (cost) number.append(h("span", { class: "line-cost", style: `--share:${cost[0]}`, title: cost[2] }, cost[1]));
      const more = this.listing.rows.taller.get(row);
      if (more) number.style.height = code.style.height = `${this.listing.height + more}px`;
      this.codes.push(code);
      this.fill(row, line);
    }
    this.paint(row);
  }

  /** @param {number} fold */
  foldRow(fold) {
    const { folds } = this.listing;
    const { first, last, label } = folds.folds[fold];
    const open = folds.open[fold];
    const lines = `${plural(last - first + 1, "line")}: ${label}`;
    const act = open ? "Fold these lines away" : "Show these lines";
    return h(
      "button",
      { type: "button", class: "listing-fold", "aria-expanded": String(open), title: act },
      h("span", { class: "listing-fold-sign", "aria-hidden": "true" }, open ? "▾" : "⋯"),
      lines,
    );
  }

  /**
   * Writes the text of a line, as far as it is shown.
   * @param {number} row
   * @param {number} line
   */
  fill(row, line) {
    const { lines, found, words } = this.listing;
    const element = this.codes[row - this.first];
    const limit = this.listing.limit(line);
    let pieces = lines.pieces(line, Math.min(limit, MOST_COLOURED));
    const coloured = lines.cut(line, Math.min(limit, MOST_COLOURED));
    if (limit > MOST_COLOURED) pieces.push([lines.text.slice(coloured, lines.cut(line, limit)), 0, -1]);
    if (found.starts.length) pieces = withMatches(pieces, lines.start(line), found.starts, found.length);
    const sign = this.listing.content.signs?.get(line + 1);
    element.replaceChildren(...(sign ? [signTag(sign)] : []));
    const segments = this.listing.coloured.segments.get(line);
    if (segments) this.fillCalls(element, byCall(pieces, segments));
    else this.append(element, this.tidied(line, pieces));
    const left = lines.end(line) - lines.cut(line, limit);
    if (left > 0)
      element.append(h("button", { type: "button", class: "listing-more" }, `… ${plural(left, "more character")}`));
    else if (words.has(line + 1))
      element.append(h("span", { class: "listing-word", "data-word": words.get(line + 1) }));
    if (segments) element.append(callNames(this.listing.app.model.units, segments));
    this.listing.rows.wrap?.apply(element, line);
    const tags = this.listing.coloured.tags(line);
    if (tags.length) element.append(h("span", { class: "tags" }, tags));
    const names = this.listing.coloured.names(line);
    if (names) element.append(names);
    element.append(...this.listing.notes.elements(line));
    // A line that holds buttons is no button itself; Enter pins it all the same.
    if (left <= 0 && !segments && !names && element.dataset.item !== undefined) element.setAttribute("role", "button");
    else element.removeAttribute("role");
  }

  /**
   * A line of code as it is shown. One in which something was found that would not be seen is whole but for its blanks:
   * it stays in line with the others.
   * @param {number} line
   * @param {LinePiece[]} pieces
   */
  tidied(line, pieces) {
    const { tidy, lines, width } = this.listing;
    if (tidy < 0) return pieces;
    const left = cuts(lines.line(line), tidy, width < NARROWEST);
    return without(pieces, hides(left, pieces) ? left.filter(([first]) => first === 0) : left);
  }

  /**
   * @param {HTMLElement} element
   * @param {LinePiece[]} pieces
   */
  append(element, pieces) {
    const { found } = this.listing;
    for (const [text, ink, match] of pieces) {
      if (ink === 0 && match < 0) {
        element.append(text);
        continue;
      }
      const piece = document.createElement(match < 0 ? "span" : "mark");
      if (ink) piece.className = `code-${ink}`;
      if (match >= 0) piece.classList.toggle("current", match === found.current);
      piece.textContent = text;
      element.append(piece);
    }
  }

  /**
   * @param {HTMLElement} element
   * @param {{ unit: number, pieces: LinePiece[] }[]} runs
   */
  fillCalls(element, runs) {
    const { units } = this.listing.app.model;
    const seen = new Set();
    for (const { unit, pieces } of runs) {
      if (unit < 0) {
        this.append(element, pieces);
        continue;
      }
      const { tag } = units.all[unit];
      const part = h("span", { class: `call ${lookOf(units.all[unit])}`, "data-unit": unit });
      // The keyboard comes to each call once.
      if (!seen.has(unit)) {
        part.tabIndex = -1;
        part.setAttribute("role", "button");
        const seen = pieces.map(([text]) => text).join("");
        part.setAttribute("aria-label", `call ${tag}: ${shortened(seen.trim(), 200)}`);
      }
      seen.add(unit);
      this.append(part, pieces);
      element.append(part);
    }
  }

  /** Gives a row the look of its mark. @param {number} row */
  paint(row) {
    const { folds, links, foldBits, app } = this.listing;
    const { line, fold } = folds.at(row);
    const number = this.numbers[row - this.first];
    const code = this.codes[row - this.first];
    const mark = fold < 0 ? links.bits[line] : folds.open[fold] ? 0 : foldBits[fold];
    const units = fold < 0 && this.listing.coloured.own.has(line);
    const looks = `${units && !this.listing.coloured.segments.has(line) ? " coloured" : units ? " calls" : ""}${litLineClass(mark)}`;
    const items = fold >= 0 ? [] : links.itemsOf(line);
    const own = links.items.has(line + 1) ? " linked" : items.length ? " within" : "";
    const traced = items.some((item) => !app.model.noOrigin.has(item)) && own === " linked" ? " traced" : "";
    number.className = `listing-number${own}${traced}${looks}`;
    code.className = `${fold >= 0 ? "listing-fold" : "listing-line"}${own}${looks}`;
    this.colour(line, mark, number, code);
    if (code.getAttribute("role") === "button")
      code.setAttribute("aria-pressed", String((mark & SELF) !== 0 && app.selection.isPinned(items)));
  }

  /**
   * Gives a row the colours of its units: of a row that is lit those that are lit; the style sheet takes the ground
   * of the others while something is.
   * @param {number} line
   * @param {number} mark
   * @param {HTMLElement} number
   * @param {HTMLElement} code
   */
  colour(line, mark, number, code) {
    const { app, coloured } = this.listing;
    const { own, segments } = coloured;
    const units = own.get(line);
    if (!units) return;
    const lit = mark ? app.selection.units : null;
    if (segments.has(line)) {
      for (const part of code.querySelectorAll("[data-unit]"))
        part.classList.toggle("on", lit?.has(Number(part.getAttribute("data-unit"))) ?? false);
      return;
    }
    const { ground, first, last, bar } = rowColours(app.model.units, units, lit);
    code.style.setProperty("--row", ground);
    code.style.setProperty("--last", last);
    number.style.setProperty("--row", first);
    number.style.setProperty("--bar", bar);
    for (const one of code.querySelectorAll("[data-unit-tag]"))
      one.classList.toggle("off", lit !== null && !lit.has(Number(one.getAttribute("data-unit-tag"))));
  }
}

/**
 * Classes of what has a mark, each with a space before it.
 * @param {number} mark
 */
export function litLineClass(mark) {
  if (!mark) return "";
  const pins = coloursOf(mark).map((colour) => ` lit-pin-${colour}`);
  const needed = isNeeded(mark) ? " lit-needed" : "";
  const pinned = pins.length > 0 ? " lit-pins" : "";
  return ` lit${mark & HOVER ? " lit-hover" : ""}${mark & SELF ? " lit-self" : ""}${needed}${pinned}${pins.join("")}`;
}
