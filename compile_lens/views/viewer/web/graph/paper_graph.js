// A graph as it is printed: whole if it fits on a page or two and can be read there, else what of it is in view, and an
// overview of the whole in which that has a frame.

import { notPrinted } from "../code/paper_rows.js";
import { plural, s } from "../dom.js";

/** @import { Drawing } from "./drawing.js" */

/** Pixels of CSS that a page of A4 has within its margins, and how small what is written in a graph may become. */
const PAPER = { width: 700, height: 1000 };
const SMALLEST = 0.7;

/** Blank ground around a drawing. */
const MARGIN = 12;

/**
 * @param {Drawing} drawing
 * @returns {Element[]}
 */
export function paperGraph(drawing) {
  const { width, height, seen } = drawing;
  const svg = /** @type {SVGSVGElement} */ (drawing.element.cloneNode(true));
  svg.classList.add("paper-graph");
  svg.firstElementChild?.removeAttribute("transform");
  const whole = drawing.culling.whole(drawing) && PAPER.width / width >= SMALLEST && PAPER.height / height >= SMALLEST;
  const [x, y, w, h] = whole
    ? [-MARGIN, -MARGIN, width + 2 * MARGIN, height + 2 * MARGIN]
    : [seen.x, seen.y, seen.width, seen.height];
  const scale = Math.min(1, PAPER.width / w, PAPER.height / h);
  svg.setAttribute("viewBox", `${x} ${y} ${w} ${h}`);
  svg.setAttribute("width", String(Math.round(w * scale)));
  svg.setAttribute("height", String(Math.round(h * scale)));
  if (whole) return [svg];
  // What is beyond would be drawn over what follows.
  svg.classList.add("paper-part");
  return [
    svg,
    notPrinted(`what of this graph, of ${plural(drawing.boxes.length, "box", "boxes")}, is not in view. All of it:`),
    overview(drawing),
  ];
}

/**
 * The boxes of a whole drawing in their colours, and a frame around what of it is printed.
 * @param {Drawing} drawing
 */
function overview({ width, height, seen, boxes, lighting }) {
  const scale = Math.min(1, PAPER.width / width, PAPER.height / 2 / height);
  const size = { width: Math.round(width * scale), height: Math.round(height * scale) };
  const rect = (/** @type {number[]} */ [x, y, w, h], /** @type {Record<string, string | number>} */ look) =>
    s("rect", { x, y, width: w, height: h, "vector-effect": "non-scaling-stroke", ...look });
  return s(
    "svg",
    { class: "paper-graph", viewBox: `0 0 ${width} ${height}`, ...size },
    boxes.map(({ at, units }) => {
      const [unit] = units.size === 1 ? units.keys() : [];
      const name = unit === undefined ? "" : `unit-${lighting.units.all[unit].colour}`;
      return rect(at, { class: name, fill: "var(--unit-fill, none)", stroke: "var(--faint)" });
    }),
    rect([seen.x, seen.y, seen.width, seen.height], { fill: "none", stroke: "var(--ink)", "stroke-width": 3 }),
  );
}
