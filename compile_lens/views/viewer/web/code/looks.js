// How a listing is looked at: tidied or as it is, in large letters or those of a long text, from which line on.

/** @import { Listing } from "./listing.js" */

/** Pixels of a row, and its letters: large, and those of a long text. */
const LARGE = { height: 27, size: "16px" };
const LONG = { height: 21, size: "13.5px" };

/** Letters of a text whose longest line would not fit in those: the largest in which it does, else as before. */
const NARROW = [13, 12.5, 12, 11.5];
/** Pixels of a row beside its text, and how wide a letter is for its height. */
const BESIDE = 34;
const LETTER = 0.605;

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
  look(listing, large ? LARGE : LONG);
}

/**
 * The largest letters in which the longest line fits; if it fits in none, as if it did.
 * @param {Listing[]} listings shown below each other
 * @param {number} width pixels
 * @param {boolean} large whether large letters are wanted
 */
export function setFitting(listings, width, large) {
  const widest = Math.max(...listings.map((one) => one.lines.widest(one.cut) - indent(one)));
  const digits = Math.max(...listings.map(({ first, lines }) => String(first + lines.count - 1).length));
  const fits = (/** @type {number} */ size) => (widest + digits) * size * LETTER + BESIDE <= width;
  const narrow = NARROW.map((size) => ({ height: LONG.height, size: `${size}px` }));
  const looks = large ? [LARGE, LONG, ...narrow] : [LONG, ...narrow];
  const fitting = looks.find(({ size }) => fits(Number.parseFloat(size)));
  for (const listing of listings) {
    listing.element.classList.toggle("fits", fitting !== undefined);
    look(listing, fitting ?? looks[0]);
  }
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
 * What is known of a kernel stands below its lines where all of both has room.
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
