// The SVG of one box, edge or stub. Nothing here has an id, and arrowheads are parts of their lines.

import { s, shortened } from "../dom.js";
import { FRAME_BAR } from "./scene.js";

/** @import { BodyBox } from "../types.d.ts" */
/** @import { BoxView } from "./views.js" */

/** Kinds that have colours of their own. */
const DRAWN_KINDS = new Set([
  "input",
  "output",
  "constant",
  "pointwise",
  "reduction",
  "scan",
  "matmul",
  "view",
  "allocation",
  "random",
  "mutation",
  "control",
  "symbol",
  "extern",
  "custom",
  "nop",
  "collapsed",
]);

/** Sizes of text in pixels, as the places of the boxes were made for. */
const LINE_SIZES = /** @type {Record<string, number>} */ ({ name: 13, target: 12, small: 12 });
const LABEL_SIZE = 12;
/** Measures of badges at the corners of a box. */
const BADGE_SIZE = 12;
const LINE_STEP = 1.32;
const CHARACTER = 0.602;
const WING = 5.2;

/**
 * The class that colours a kind.
 * @param {string} kind
 */
export function kindClass(kind) {
  return `kind-${DRAWN_KINDS.has(kind) ? kind : "other"}`;
}

/**
 * A coordinate with at most one decimal.
 * @param {number} value
 */
export function pixel(value) {
  return Math.round(value * 10) / 10;
}

/**
 * @param {number} x
 * @param {number} y
 */
export function translate(x, y) {
  return `translate(${pixel(x)} ${pixel(y)})`;
}

/**
 * The shapes in a closed box, from its top left corner.
 * @param {BodyBox} box
 * @param {number} w
 * @param {number} h
 * @param {number} saved how many of its nodes are saved for backward
 * @param {boolean} [banded] whether a band stands in the place of its last line
 */
export function cardShapes(box, w, h, saved, banded = false) {
  const several = box.members.length > 1;
  const shapes = [];
  // A second edge behind, as of a stack of cards.
  if (several) shapes.push(s("rect", { class: "face back", x: 4, y: 4, width: pixel(w), height: pixel(h), rx: 6 }));
  shapes.push(s("rect", { class: "face", width: pixel(w), height: pixel(h), rx: 6 }));
  const size = (/** @type {string} */ role) => LINE_SIZES[role] ?? LINE_SIZES.small;
  let y = (h - box.lines.reduce((sum, [, role]) => sum + size(role) * LINE_STEP, 0)) / 2;
  for (const [i, [text, role]] of box.lines.entries()) {
    if (banded && i === box.lines.length - 1) break;
    y += size(role) * LINE_STEP;
    const name = role in LINE_SIZES ? role : "small";
    shapes.push(s("text", { class: name, x: pixel(w / 2), y: pixel(y - size(role) * 0.36) }, text));
  }
  if (saved > 0) shapes.push(...tagShapes("badge", several ? `${saved} saved` : "saved", w + 7, -9));
  return shapes;
}

/**
 * A small tag that ends at `right`.
 * @param {string} name class of its ground
 * @param {string} text
 * @param {number} right
 * @param {number} top
 */
export function tagShapes(name, text, right, top) {
  const across = text.length * CHARACTER * BADGE_SIZE + 9;
  return [
    s("rect", { class: name, x: pixel(right - across), y: top, width: pixel(across), height: 16, rx: 8 }),
    s("text", { class: `on-${name}`, x: pixel(right - across / 2), y: top + 12.2 }, text),
  ];
}

/** The left edge of the name in a bar, after the sign that closes the box, and the gap between it and the count. */
const HEADING = 28;
const COUNT_GAP = 10;

/**
 * Keeps the words in the bar of an open box in view, and the sign before them, where the box is wider than the window.
 * @param {BoxView} view
 * @param {number} left of what is in view
 * @param {number} right
 */
export function keepHeading(view, left, right) {
  const [x, , w] = view.at;
  const [heading, count] = [".heading", ".count"].map((name) => view.card?.querySelector(name));
  if (!heading || !view.opener) return;
  const across = (heading.textContent ?? "").length * LINE_SIZES.name * CHARACTER;
  const room = Math.min(w, right - x) - HEADING - across - 8;
  const shift = pixel(Math.max(0, Math.min(left - x, room)));
  heading.setAttribute("x", String(HEADING + shift));
  count?.setAttribute("x", String(pixel(HEADING + shift + across + COUNT_GAP)));
  view.opener.setAttribute("transform", `translate(${15 + shift} 13)`);
}

/**
 * The bar on top of an open box.
 * @param {BodyBox} box
 * @param {number} w
 * @param {string} words how much is in it
 * @param {string} [same] which others compute the same
 */
export function barShapes(box, w, words, same = "") {
  const columns = Math.floor((w - 36) / (LINE_SIZES.name * CHARACTER));
  const name = shortened(box.name, Math.max(4, columns));
  const suffix = same && columns > name.length + same.length + 2 ? ` ${same}` : "";
  const rest = columns - name.length - suffix.length - 2;
  const round = `M0 ${FRAME_BAR}V6a6 6 0 0 1 6-6H${pixel(w - 6)}a6 6 0 0 1 6 6V${FRAME_BAR}z`;
  const heading = s("text", { class: "heading", x: HEADING, y: 17.5 }, name, suffix && s("tspan", {}, suffix));
  const shapes = [s("path", { class: "bar", d: round }), heading];
  if (rest >= words.length) shapes.push(s("text", { class: "count", y: 17.5 }, words));
  return shapes;
}

/**
 * The sign that opens or closes a box; its middle is at 0, 0.
 * @param {boolean} open
 */
export function signShapes(open) {
  return [
    s("circle", { class: "reach", r: 12 }),
    s("circle", { class: "sign", r: 7.5 }),
    s("path", { class: "stroke", d: open ? "M-3.5 0H3.5" : "M-3.5 0H3.5M0 -3.5V3.5" }),
  ];
}

/**
 * The lines of text in a stub, after its rectangle.
 * @param {string[]} lines
 * @param {number} w
 * @param {number} h
 */
export function stubShapes(lines, w, h) {
  /** @type {SVGElement[]} */
  const shapes = [s("rect", { class: "face", width: pixel(w), height: pixel(h), rx: 4 })];
  lines.forEach((line, i) => {
    const indent = line.length - line.trimStart().length;
    const x = 7 + indent * CHARACTER * LABEL_SIZE;
    shapes.push(
      s("text", { x: pixel(x), y: pixel(3 + (i + 1) * LABEL_SIZE * LINE_STEP - LABEL_SIZE * 0.36) }, line.trim()),
    );
  });
  return shapes;
}

/**
 * The place of the text of an edge.
 * @param {Element} text
 * @param {[number, number]} middle
 */
export function putLabel(text, [x, y]) {
  text.setAttribute("x", String(pixel(x)));
  text.setAttribute("y", String(pixel(y + LABEL_SIZE * 0.34)));
}

/**
 * A chain of curves with an open arrowhead at its end.
 * @param {number[]} points
 */
export function curve(points) {
  const last = points.length - 2;
  let from = last - 2;
  const [x, y] = [points[last], points[last + 1]];
  while (from > 0 && Math.abs(points[from] - x) + Math.abs(points[from + 1] - y) < 0.05) from -= 2;
  const angle = Math.atan2(y - points[from + 1], x - points[from]);
  const wing = (/** @type {number} */ turn) =>
    `${pixel(x - WING * Math.cos(angle + turn))} ${pixel(y - WING * Math.sin(angle + turn))}`;
  const rest = [];
  for (let i = 2; i < points.length; i += 2) rest.push(`${pixel(points[i])} ${pixel(points[i + 1])}`);
  return `M${pixel(points[0])} ${pixel(points[1])}C${rest.join(" ")}M${wing(-0.5)}L${pixel(x)} ${pixel(y)} ${wing(0.5)}`;
}
