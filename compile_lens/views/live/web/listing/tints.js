// Highlighting of a listing beyond its rows: a tint behind all lines of an item, ticks at the right edge.

import { h } from "../dom.js";
import { litLineClass } from "./listing_block.js";

/** @import { Listing } from "./listing.js" */

/** Places on the scale at the right edge. */
const SCALE = 200;

/**
 * A tint for each range whose item is lit.
 * @param {Listing} listing
 */
export function shadesOf({ links: { ranges, rangeBits }, rows, folds }) {
  return ranges.flatMap(({ first, last }, i) => {
    if (!rangeBits[i]) return [];
    const top = rows.top(folds.row(first - 1));
    const height = rows.top(folds.row(last - 1) + 1) - top;
    return [
      h("div", { class: `listing-shade${litLineClass(rangeBits[i])}`, style: `top:${top}px;height:${height}px` }),
    ];
  });
}

/**
 * A tick for each place of the scale that a lit line stands at.
 * @param {Listing} listing
 */
export function ticksOf({ folds, links, foldBits }) {
  return [...folds.summary(links.bits, foldBits, SCALE)].flatMap((mark, i) =>
    mark ? [h("i", { class: `listing-tick${litLineClass(mark)}`, style: `top:${(100 * i) / SCALE}%` })] : [],
  );
}
