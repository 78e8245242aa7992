// A graph as it is printed: whole if it can be read on a page, upright or turned, else what of it is in view, and an overview
// of the whole in which that has a frame.

import { lookOf } from "../data/units.js";
import { notPrinted } from "../listing/print_rows.js";
import { plural, s } from "../dom.js";

/** @import { Drawing } from "../drawing/drawing.js" */

/** Pixels of CSS that a page of A4 has within its margins, and how small letters of 12 pixels may become: 6 points. */
const PAPER = { width: 700, height: 1000 };
const SMALLEST = 8 / 12;

/** Blank ground around a drawing. */
const MARGIN = 12;

/**
 * @param {Drawing} drawing
 * @returns {Element[]}
 */
export function paperGraph(drawing) {
  const { seen } = drawing;
  const [width, height] = [drawing.width + 2 * MARGIN, drawing.height + 2 * MARGIN];
  const upright = Math.min(1, PAPER.width / width, PAPER.height / height);
  const turned = Math.min(1, PAPER.height / width, PAPER.width / height);
  const whole = Math.max(upright, turned) >= SMALLEST;
  if (whole) drawing.complete();
  const svg = /** @type {SVGSVGElement} */ (drawing.element.cloneNode(true));
  svg.classList.add("paper-graph");
  svg.firstElementChild?.removeAttribute("transform");
  if (whole && upright < SMALLEST) {
    svg.firstElementChild?.setAttribute("transform", "rotate(-90)");
    return [fitted(svg, -MARGIN, MARGIN - width, height, width)];
  }
  if (whole) return [fitted(svg, -MARGIN, -MARGIN, width, height)];
  fitted(svg, seen.x, seen.y, seen.width, seen.height);
  // What is beyond would be drawn over what follows.
  svg.classList.add("paper-part");
  return [
    svg,
    notPrinted(`what of this graph, of ${plural(drawing.boxes.length, "box", "boxes")}, is not in view. All of it:`),
    overview(drawing),
  ];
}

/**
 * As large as it is, or as there is room.
 * @param {SVGSVGElement} svg
 * @param {number} x
 * @param {number} y
 * @param {number} width
 * @param {number} height
 */
function fitted(svg, x, y, width, height) {
  const scale = Math.min(1, PAPER.width / width, PAPER.height / height);
  svg.setAttribute("viewBox", `${x} ${y} ${width} ${height}`);
  svg.setAttribute("width", String(Math.round(width * scale)));
  svg.setAttribute("height", String(Math.round(height * scale)));
  return svg;
}

/**
 * The boxes of a whole drawing in their colours, and a frame around what of it is printed.
 * @param {Drawing} drawing
 */
function overview({ width, height, seen, boxes, highlighting }) {
  const scale = Math.min(1, PAPER.width / width, PAPER.height / 2 / height);
  const size = { width: Math.round(width * scale), height: Math.round(height * scale) };
  const rect = (/** @type {number[]} */ [x, y, w, h], /** @type {Record<string, string | number>} */ look) =>
    s("rect", { x, y, width: w, height: h, "vector-effect": "non-scaling-stroke", ...look });
  return s(
    "svg",
    { class: "paper-graph", viewBox: `0 0 ${width} ${height}`, ...size },
    boxes.map(({ at, units }) => {
      const [unit] = units.size === 1 ? units.keys() : [];
      const name = unit === undefined ? "" : lookOf(highlighting.units.all[unit]);
      return rect(at, { class: name, fill: "var(--unit-fill, none)", stroke: "var(--faint)" });
    }),
    rect([seen.x, seen.y, seen.width, seen.height], { fill: "none", stroke: "var(--ink)", "stroke-width": 3 }),
  );
}
