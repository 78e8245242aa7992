// What of a listing is in view.

/** @import { Listing } from "./listing.js" */

/**
 * Whether a line of one of these items is in view.
 * @param {Listing} listing
 * @param {number[]} items
 */
export function seesItems({ rows, folds, links }, items) {
  const view = rows.view();
  return items.some((item) =>
    links.linesOf(item).some((line) => folds.shows(line) && rows.sees(folds.row(line), view)),
  );
}

/**
 * Items of the lines in view that came from a unit, from the top.
 * @param {Listing} listing
 */
export function itemsInView({ rows, folds, links, coloured }) {
  const view = rows.view();
  return [...coloured.own.keys()]
    .filter((line) => folds.shows(line) && rows.sees(folds.row(line), view))
    .sort((a, b) => a - b)
    .flatMap((line) => links.itemsOf(line));
}
