// What of a listing is in view.

/** @import { Listing } from "./listing.js" */

/**
 * Whether a line of one of these items is in view.
 * @param {Listing} listing
 * @param {number[]} items
 */
export function seesItems(listing, items) {
  const seen = seeing(listing);
  return items.some((item) => listing.links.linesOf(item).some(seen));
}

/**
 * Items of the lines in view that came from a unit, from the top.
 * @param {Listing} listing
 */
export function itemsInView(listing) {
  return [...listing.coloured.own.keys()]
    .filter(seeing(listing))
    .sort((a, b) => a - b)
    .flatMap((line) => listing.links.itemsOf(line));
}

/**
 * Whether a line, counted from 1, is in view as the listing is scrolled now.
 * @param {Listing} listing
 * @returns {(line: number) => boolean}
 */
function seeing({ rows, folds }) {
  const view = rows.view();
  return (line) => folds.shows(line) && rows.sees(folds.row(line), view);
}
