// The edges of a low window on a drawing, moved so that they cut no box.

/** @import { BoxView } from "../drawing/views.js" */

/** Room for what hangs over the edges of a box, in its own pixels: badges above it, tags below. */
const OVER = 9;
const UNDER = 14;
/** So far the window is scrolled, and so much lower or higher it becomes. */
const SCROLLED = 40;
const LOWER = 40;
const HIGHER = 60;

/**
 * The distance to scroll, and how much lower the window must end, so that its first and its last line of boxes are whole:
 * 0 where they are, or where too much were to move.
 * @param {Pick<BoxView, "at" | "inside">[]} boxes
 * @param {{ x: number, y: number, width: number, height: number }} view
 */
export function wholeLines(boxes, { x, y, width, height }) {
  const spans = boxes
    .filter(({ at, inside }) => !inside && at[0] < x + width && at[0] + at[2] > x)
    .map(({ at }) => [at[1] - OVER, at[1] + at[3] + UNDER]);
  const clear = (/** @type {number} */ line) => spans.every(([from, to]) => line <= from || line >= to);
  /** @param {number} line @param {number} up @param {number} down */
  const nearest = (line, up, down) => {
    const ends = [line, ...spans.flat()].filter((end) => end >= line - up && end <= line + down && clear(end));
    return ends.length ? ends.reduce((a, b) => (Math.abs(b - line) < Math.abs(a - line) ? b : a)) - line : 0;
  };
  const scroll = nearest(y, SCROLLED, SCROLLED);
  return { scroll, lower: nearest(y + scroll + height, HIGHER, LOWER) };
}
