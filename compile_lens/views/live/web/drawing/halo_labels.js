// The place of the sentence on a kernel's ground: beside one of its nodes, and on nothing else.

/** @import { Rectangle } from "./curves.js" */
/** @import { LevelView } from "./views.js" */

/** Pixels of ground around a node. */
export const AROUND = 12;
/** Letters of the sentence, in pixels, from line to line, and how wide one is for its height. */
export const SIZE = 12;
export const STEP = 15;
const LETTER = 0.602;
/** Blank ground that the sentence keeps from everything else. */
const CLEAR = 5;

/**
 * Small rectangles along the edges of a level, and their labels.
 * @param {LevelView} level
 * @returns {Rectangle[]}
 */
export function ofEdges({ edges }) {
  /** @type {Rectangle[]} */
  const grounds = [];
  for (const { points, label, labelAt } of edges) {
    if (label && labelAt) grounds.push([labelAt[0] - label.length * 3.1, labelAt[1] - 7, label.length * 6.2, 14]);
    for (let i = 0; i + 7 < points.length; i += 6)
      for (let t = 0; t <= 1; t += 0.125) {
        const [a, b, c, d] = [(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t ** 3];
        const on = (/** @type {number} */ k) =>
          a * points[i + k] + b * points[i + 2 + k] + c * points[i + 4 + k] + d * points[i + 6 + k];
        grounds.push([on(0) - 3, on(1) - 3, 6, 6]);
      }
  }
  return grounds;
}

/**
 * A place for a sentence beside one of the nodes, the lowest first, where it covers nothing; null without.
 * @param {string[]} lines
 * @param {Rectangle[]} nodes
 * @param {Rectangle[]} taken
 * @param {number} width of the drawing
 * @returns {[number, number, number, number] | null}
 */
export function room(lines, nodes, taken, width) {
  const across = Math.max(...lines.map((line) => line.length)) * SIZE * LETTER;
  const down = lines.length * STEP;
  for (const [x, y, w, h] of [...nodes].sort((a, b) => b[1] - a[1]))
    for (const [left, top] of [
      [x - AROUND - CLEAR - across, y + h - down],
      [x + w + AROUND + CLEAR, y + h - down],
      [x - AROUND - CLEAR - across, y],
      [x + w + AROUND + CLEAR, y],
    ]) {
      if (left < 0 || left + across > width) continue;
      const free = taken.every(
        ([tx, ty, tw, th]) =>
          tx > left + across + CLEAR || tx + tw < left - CLEAR || ty > top + down + CLEAR || ty + th < top - CLEAR,
      );
      if (free) return [left, top, across, down];
    }
  return null;
}
