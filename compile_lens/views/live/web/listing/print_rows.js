// The rows of a listing as they are printed: long lines are broken, so each row is an element of its own.

import { grouped, h, plural } from "../dom.js";
import { BLOCK_ROWS, ListingBlock } from "./listing_block.js";

/** @import { Listing } from "./listing.js" */
/** @import { KernelData } from "../types.d.ts" */

/** Rows of one listing that are printed: some ten pages. */
const MOST_ROWS = 600;
/** Letters of a line that is not broken. */
const MOST_LETTERS = 88;

/**
 * Says what of something is not printed.
 * @param {string} words
 */
export function notPrinted(words) {
  return h("p", { class: "paper-left" }, `not printed: ${words}`);
}

/**
 * The lines that are not folded away, as they are shown, and a line about what is left out.
 * @param {Listing} listing
 * @returns {HTMLElement[]}
 */
export function paperRows(listing) {
  const { rows } = listing.folds;
  const digits = String(listing.first + listing.lines.count - 1).length;
  const outdent = listing.element.style.getPropertyValue("--outdent") || "0";
  /** @type {HTMLElement[]} */
  const elements = [];
  for (let number = 0; number * BLOCK_ROWS < Math.min(rows, MOST_ROWS); number++) {
    const { numbers, codes } = new ListingBlock(listing, number);
    codes.forEach((code, i) => {
      // Names below the calls of a line, and what happened at it, need their room.
      code.style.minHeight = code.style.height;
      code.style.height = numbers[i].style.height = "";
      // Below a line that is broken no name would stand under its call.
      const names = code.querySelector(".call-names");
      names?.classList.toggle(
        "broken",
        listing.lines.length(listing.folds.at(number * BLOCK_ROWS + i).line) > MOST_LETTERS,
      );
      elements.push(h("div", { class: "paper-row" }, numbers[i], code));
    });
  }
  const printed = elements.length;
  const body = h("div", { class: "paper-rows", style: `--digits:${digits};--outdent:${outdent}` }, elements);
  if (printed === rows) return [body];
  return [body, notPrinted(`${grouped(rows - printed)} of ${plural(rows, "row")}`)];
}

/**
 * A pane of code: the kernel that is shown, below the list of all.
 * @param {HTMLElement} pane
 * @param {HTMLElement | undefined} panel
 * @param {KernelData | null} kernel null for the whole module
 * @param {number} others kernels beside it
 * @param {Listing[]} listings
 * @returns {Node[]}
 */
export function paperCode(pane, panel, kernel, others, listings) {
  const copies = [pane.querySelector(".code-launches"), panel?.querySelector(".code-foot")].map((one) =>
    one ? [one.cloneNode(true)] : [],
  );
  return [
    ...copies[0],
    ...(kernel && others ? [notPrinted(`the code of ${plural(others, "other kernel")}`)] : []),
    h("h3", {}, kernel ? kernel.name : "the whole module"),
    ...listings.flatMap(paperRows),
    ...copies[1],
  ];
}
