// The display of a listing: tidied or as it is, in large letters or those of a long text, from which line on.

import { cuts } from "./abbreviations.js";
import { roomOf } from "./unit_marks.js";

/** @import { Listing } from "./listing.js" */

/** Pixels of a row, and its letters: large, and those of a long text. */
const LARGE = { height: 27, size: "16px" };
const LONG = { height: 21, size: "13.5px" };
/** Between these, for few rows of which one is long. */
const MEDIUM = [
  { height: 25, size: "15px" },
  { height: 23, size: "14px" },
];

/** Letters of a text whose longest line would not fit in those: the largest in which it does, else as before. */
const SMALL = [13, 12.5, 12, 11.5].map((size) => ({ height: LONG.height, size: `${size}px` }));
/** Pixels of a row beside its text, and how wide a letter is for its height. */
export const BESIDE = 34;
export const LETTER = 0.605;
/** Pixels of the bars of cost before the numbers of lines, as in the style sheet. */
export const COSTS = 62;

/** Columns so narrow that letters become small rather than that one reads half of a row, and indents as well. */
export const NARROW = 440;
export const NARROWEST = 320;
/** Pixels around the number of a line, as in the style sheet. */
export const GUTTER = { usual: 34, narrow: 26 };
/** Rows that are measured, and the share of what fits at best that is enough where not all can. */
const MEASURED = 200;
const MOST_ROWS = 0.8;

/** Blanks at the start of a line that are left out at most. */
const MOST_INDENT = 8;

/**
 * Shows code tidied, or as it is.
 * @param {Listing} listing
 * @param {boolean} wanted
 */
export function setTidy(listing, wanted) {
  const { lines, coloured } = listing;
  const depths = [...coloured.own.keys()].map((line) => lines.length(line) - lines.line(line).trimStart().length);
  listing.tidy = wanted ? Math.min(MOST_INDENT, ...depths) : -1;
  listing.rows.arrange();
}

/**
 * Large letters, or those of a long text: the largest in which the rows have room beside their tags. In a narrow column
 * those in which the most have.
 * @param {Listing} listing
 * @param {boolean} large
 * @param {number} width pixels
 */
export function setLarge(listing, large, width) {
  const narrow = fitTo(listing, width);
  const { coloured, folds, lines, first, tidy } = listing;
  const digits = String(first + lines.count - 1).length;
  const needs = [...coloured.own.keys()]
    .filter((line) => folds.shows(line))
    .slice(0, MEASURED)
    .map((line) => {
      const left = tidy < 0 ? [] : cuts(lines.line(line), tidy, width < NARROWEST);
      const letters = left.reduce((sum, [from, to]) => sum - to + from, lines.length(line));
      const beside = narrow ? GUTTER.narrow : GUTTER.usual;
      return { letters: letters + digits, beside, tags: roomOf(coloured.tags(line), narrow) };
    });
  const usual = large ? [LARGE, ...MEDIUM, LONG] : [LONG];
  const looks = narrow ? [...usual, ...SMALL] : usual;
  const fitting = looks.map(({ size }) => {
    const letter = Number.parseFloat(size) * LETTER;
    // A row that is whole but for its tags is half of one.
    return needs.reduce((sum, { letters, beside, tags }) => {
      const left = width - letters * letter - beside;
      return sum + (left >= tags ? 2 : left >= 0 ? 1 : 0);
    }, 0);
  });
  const most = Math.max(...fitting);
  const enough = narrow || most === 2 * needs.length ? most : most * MOST_ROWS;
  look(listing, looks[fitting.findIndex((count) => count >= enough)] ?? usual[0]);
}

/**
 * Keeps how wide a listing is, and whether that is narrow.
 * @param {Listing} listing
 * @param {number} width pixels
 */
function fitTo(listing, width) {
  const kind = (/** @type {number} */ pixels) => [NARROW, NARROWEST].filter((most) => pixels < most).length;
  const other = kind(width) !== kind(listing.width);
  listing.width = width;
  listing.element.classList.toggle("narrow", width < NARROW);
  if (listing.coloured.fit() || other) listing.rows.arrange();
  return width < NARROW;
}

/**
 * The largest letters in which the longest line fits; if it fits in none, as if it did. The pixels that it needs in the
 * smallest.
 * @param {Listing[]} listings shown below each other
 * @param {number} width pixels
 * @param {boolean} large whether large letters are wanted
 */
export function setFitting(listings, width, large) {
  const widest = Math.max(...listings.map((one) => one.lines.widest(one.cut) - indent(one)));
  for (const listing of listings) fitTo(listing, width);
  const digits = Math.max(...listings.map(({ first, lines }) => String(first + lines.count - 1).length));
  const costs = listings.some((one) => one.content.costs?.size) ? COSTS : 0;
  for (const { element } of listings) element.classList.toggle("costs", costs > 0);
  const needs = (/** @type {number} */ size) => (widest + digits) * size * LETTER + BESIDE + costs;
  const looks = large ? [LARGE, LONG, ...SMALL] : [LONG, ...SMALL];
  const fitting = looks.find(({ size }) => needs(Number.parseFloat(size)) <= width);
  for (const listing of listings) {
    listing.element.classList.toggle("fits", fitting !== undefined);
    look(listing, fitting ?? looks[0]);
  }
  return Math.ceil(needs(Number.parseFloat(SMALL[SMALL.length - 1].size)));
}

/**
 * Blanks that every line of a text begins with.
 * @param {Listing} listing
 */
function indent({ lines }) {
  let least = Infinity;
  for (let line = 0; line < lines.count; line++) {
    const text = lines.line(line);
    const blanks = text.length - text.trimStart().length;
    if (blanks < text.length) least = Math.min(least, text.slice(0, blanks).includes("\t") ? 0 : blanks);
  }
  return Number.isFinite(least) ? least : 0;
}

/**
 * Shows a text without the blanks that every line of it begins with. They stay in it, for who copies it.
 * @param {Listing} listing
 */
export function outdent(listing) {
  listing.element.style.setProperty("--outdent", String(indent(listing)));
}

/**
 * @param {Listing} listing
 * @param {{ height: number, size: string }} wanted
 */
function look(listing, { height, size }) {
  if (height === listing.height && listing.element.style.getPropertyValue("--size") === size) return;
  listing.height = listing.rows.height = height;
  listing.element.style.setProperty("--line", `${height}px`);
  listing.element.style.setProperty("--size", size);
  listing.rows.arrange();
}

/**
 * Shows the facts of a kernel below its lines where all of both has room.
 * @param {Listing} listing
 * @param {HTMLElement} panel
 */
export function setTight(listing, panel) {
  const foot = panel.querySelector(".code-foot");
  if (!foot) return;
  panel.classList.remove("code-tight");
  const room = listing.element.offsetHeight + /** @type {HTMLElement} */ (foot).offsetHeight;
  panel.classList.toggle("code-tight", listing.rows.top(listing.folds.rows) + foot.scrollHeight > room);
}

/**
 * Brings the first line that came from a unit to the top, with a little of what is above it.
 * @param {Listing} listing
 */
export function showFirst({ coloured, lines, folds, rows }) {
  const first = Math.min(...coloured.own.keys(), lines.count);
  if (first >= lines.count || folds.row(first) < 8) return;
  rows.wanted = rows.view() ? -1 : first;
  rows.bring(folds.row(first), 0.15);
}
