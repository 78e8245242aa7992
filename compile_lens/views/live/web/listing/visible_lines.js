// The lines of a listing that are in view.

/** @import { Listing } from "./listing.js" */

/**
 * Pixels from the view to the nearest line of these items: 0 if it is in view, infinite if none is unfolded.
 * @param {Listing} listing
 * @param {number[]} items
 */
export function farFrom(listing, items) {
  const far = farOf(listing);
  return items
    .flatMap((item) => listing.links.linesOf(item))
    .reduce((least, line) => Math.min(least, far(line)), Infinity);
}

/**
 * Items of the lines that came from a unit and are not folded, from the top; each with the pixels from the view to its
 * line.
 * @param {Listing} listing
 * @returns {[number, number][]}
 */
export function itemsInView(listing) {
  const far = farOf(listing);
  return [...listing.coloured.own.keys()]
    .filter((line) => far(line) < Infinity)
    .sort((a, b) => a - b)
    .flatMap((line) => listing.links.itemsOf(line).map((item) => /** @type {[number, number]} */ ([item, far(line)])));
}

/**
 * The distance of a line, counted from 1, from being in view whole, as the listing is scrolled now.
 * @param {Listing} listing
 * @returns {(line: number) => number} pixels; infinite for what is folded
 */
function farOf({ rows, folds }) {
  const view = rows.view();
  return (line) => {
    if (!view || !folds.shows(line)) return Infinity;
    const row = folds.row(line);
    return Math.max(0, view.top - rows.top(row), rows.top(row + 1) - view.bottom);
  };
}
