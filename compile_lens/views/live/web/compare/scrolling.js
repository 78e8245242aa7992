// The scroll positions of sources and code: what differs, what was clicked, what is lit.

/** @import { CodePane } from "../code/pane.js" */
/** @import { SourcePane } from "../code/source_pane.js" */
/** @import { Listing } from "../listing/listing.js" */

/**
 * As the page opens.
 * @param {SourcePane} source
 * @param {[number, number] | null} [cause] the column and the item of the first cause that is of it
 */
export function openSource(source, cause) {
  if (cause && showIn(source, [cause[1]])) return;
  const [[part, lines] = []] = source.signs;
  const [line] = lines?.keys() ?? [];
  if (part !== undefined && line !== undefined) showLine(source, part, line - 1);
}

/**
 * Brings the first of some items that has a line into view, and of the line what differs. False if none has.
 * @param {SourcePane} source
 * @param {number[]} items
 */
export function showIn(source, items) {
  for (const item of items)
    for (const [part, { listing }] of source.parts.entries()) {
      const [line] = listing.links.linesOf(item);
      if (line === undefined) continue;
      showLine(source, part, line);
      return true;
    }
  return false;
}

/**
 * @param {SourcePane} source
 * @param {number} part
 * @param {number} line counted from 0
 */
function showLine(source, part, line) {
  const { listing } = source.parts[part];
  listing.showLine(line);
  listing.rows.wrap?.show(line, source.unlike.get(part)?.get(line + 1) ?? 0);
}

export class ScrollAnchor {
  /** @param {HTMLElement} element all of the page */
  constructor(element) {
    /** The element that was clicked or typed at last, and all around it. @type {EventTarget[]} */
    this.around = [];
    for (const kind of ["pointerdown", "keydown"])
      element.addEventListener(kind, (event) => (this.around = event.composedPath()), true);
  }

  /** Something is shown that no click asked for. */
  forget() {
    this.around = [];
  }

  /** True if it was clicked in an element. @param {Element | undefined} element */
  within(element) {
    return element !== undefined && this.around.includes(element);
  }

  /**
   * The line of a listing that was clicked; -1 for none.
   * @param {Listing} listing
   */
  line({ element, folds }) {
    if (!this.within(element)) return -1;
    const row = this.around.find((one) => one instanceof HTMLElement && one.dataset.row !== undefined);
    const number = row instanceof HTMLElement ? Number(row.dataset.row) : -1;
    return number >= 0 && number < folds.rows ? folds.at(number).line : -1;
  }
}

/**
 * Brings the first of some items into view, and all that is lit out of its folds. In the listing that was clicked the
 * line under the pointer stays where it is, in others the first line that is lit and in view.
 * @param {CodePane} pane
 * @param {number[]} items
 * @param {boolean} unfold whether out of its folds
 * @param {ScrollAnchor} anchor
 */
export function revealAll(pane, items, unfold, anchor) {
  const own = anchor.within(pane.body);
  if (!own) pane.reveal(items);
  for (const listing of unfold ? pane.listings() : []) {
    const { folds, foldBits, rows, links } = listing;
    const view = rows.view();
    const clicked = anchor.line(listing);
    const lit = links.lit.filter((line) => folds.shows(line) && rows.sees(folds.row(line), view));
    const line = clicked >= 0 ? clicked : Math.min(...lit);
    const top = Number.isFinite(line) ? rows.top(folds.row(line)) : 0;
    foldBits.forEach((bits, fold) => bits && folds.set(fold, true));
    rows.arrange();
    if (Number.isFinite(line)) rows.viewport.scrollTop += rows.top(folds.row(line)) - top;
    rows.render();
    listing.shade();
  }
  if (!own) pane.reveal(items);
}
