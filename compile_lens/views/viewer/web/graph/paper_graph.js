// A graph as it is printed: whole if it fits on a page or two and can be read there, else what of it is in view.

import { notPrinted } from "../code/paper_rows.js";
import { plural } from "../dom.js";

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
  return [svg, notPrinted(`what of this graph, of ${plural(drawing.boxes.length, "box", "boxes")}, is not in view`)];
}
