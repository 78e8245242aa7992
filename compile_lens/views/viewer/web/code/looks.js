// How a listing is looked at: tidied or as it is, in large letters or those of a long text, from which line on.

/** @import { Listing } from "./listing.js" */

/** Pixels of a row, and its letters: large, and those of a long text. */
const LARGE = { height: 27, size: "16px" };
const LONG = { height: 21, size: "13.5px" };

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
 * Large letters, or those of a long text.
 * @param {Listing} listing
 * @param {boolean} large
 */
export function setLarge(listing, large) {
  const { height, size } = large ? LARGE : LONG;
  if (height === listing.height) return;
  listing.height = listing.rows.height = height;
  listing.element.style.setProperty("--line", `${height}px`);
  listing.element.style.setProperty("--size", size);
  listing.rows.arrange();
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
