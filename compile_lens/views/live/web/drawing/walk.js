// The moves of the arrow keys in a drawing: down to the users of a value, up to its origin, and to the sides.

import { FRAME_BAR } from "./scene.js";

/** @import { BoxView, StubView } from "./views.js" */

/** @typedef {BoxView | StubView} Stop what takes the focus */
/** @typedef {"up" | "down" | "left" | "right"} Direction */

/** A step to the side costs more the more it leads up or down. */
const OFF_COURSE = 4;

/**
 * The next stop in a direction; null at the end.
 * @param {Stop} from
 * @param {Direction} direction
 * @param {Stop[]} stops all of the drawing
 * @returns {Stop | null}
 */
export function nextStop(from, direction, stops) {
  if (direction === "left" || direction === "right") return toTheSide(from, direction, stops);
  const down = direction === "down";
  if ("owner" in from) return from.outgoing === down ? null : from.owner;
  if (down && from.inside) return topmost(from.inside.boxes);
  return along(from, down);
}

/**
 * The box at the other end of an edge, the nearest of several; then a stub; then what is around the frame.
 * @param {BoxView} from
 * @param {boolean} down
 * @returns {Stop | null}
 */
function along(from, down) {
  const ends = down ? from.out.map((edge) => edge.target) : from.into.map((edge) => edge.source);
  const others = ends.filter((end) => end !== from);
  const x = middle(from)[0];
  others.sort((one, other) => Math.abs(middle(one)[0] - x) - Math.abs(middle(other)[0] - x) || one.at[1] - other.at[1]);
  if (others.length > 0) return others[0];
  const stub = from.stubs.find((one) => one.outgoing === down);
  if (stub) return stub;
  const { parent } = from.level;
  if (!parent) return null;
  return down ? along(parent, down) : parent;
}

/**
 * @param {Stop} from
 * @param {"left" | "right"} direction
 * @param {Stop[]} stops
 * @returns {Stop | null}
 */
function toTheSide(from, direction, stops) {
  const sign = direction === "right" ? 1 : -1;
  const [x, y] = middle(from);
  const own = held(from);
  let best = null;
  let least = Infinity;
  for (const stop of stops) {
    if (stop === from) continue;
    const [sx, sy] = middle(stop);
    const ahead = (sx - x) * sign;
    if (ahead <= 0.5) continue;
    const [, top, , height] = held(stop);
    const gap = Math.max(0, top - (own[1] + own[3]), own[1] - (top + height));
    const cost = ahead + OFF_COURSE * gap + Math.abs(sy - y) / 100;
    // What lies more above or below than beside is no neighbour.
    if (gap > ahead || cost >= least) continue;
    least = cost;
    best = stop;
  }
  return best;
}

/**
 * The box to begin with: the one on top, the left one of several.
 * @template {Stop} T
 * @param {T[]} stops
 * @returns {T | null}
 */
export function topmost(stops) {
  /** @type {T | null} */
  let best = null;
  for (const stop of stops) {
    if (best === null || stop.at[1] < best.at[1] || (stop.at[1] === best.at[1] && stop.at[0] < best.at[0])) best = stop;
  }
  return best;
}

/**
 * The ground that a stop takes up: of an open box, its bar.
 * @param {Stop} stop
 * @returns {[number, number, number, number]}
 */
export function held(stop) {
  const [x, y, w, h] = stop.at;
  return [x, y, w, "inside" in stop && stop.inside ? FRAME_BAR : h];
}

/**
 * @param {Stop} stop
 * @returns {[number, number]}
 */
function middle(stop) {
  const [x, y, w, h] = held(stop);
  return [x + w / 2, y + h / 2];
}

/** Kinds of nodes that do no work. */
const IDLE = new Set(["input", "output", "constant", "symbol"]);

/** Share of the height of a window above which an open box begins that is to be seen first. */
const NEAR = 0.6;

/** Margin around a box that is seen whole, in pixels of the drawing. */
const AROUND = 6;

/**
 * The middle, from left to right, of a window on the top of a drawing: that of what does the work there in the first box
 * that is open, such as a layer, else of all; moved so far that as many boxes beside it as there is room for are
 * whole.
 * @param {BoxView[]} boxes
 * @param {number} height of the window
 * @param {number} width
 */
export function trunk(boxes, height, width) {
  const first = topmost(boxes);
  if (first === null) return 0;
  const until =
    (/** @type {number} */ share) =>
    (/** @type {BoxView} */ { at }) =>
      at[1] < first.at[1] + height * share;
  const works = (/** @type {BoxView} */ { box, inside }) => !inside && !IDLE.has(box.kind);
  const open = topmost(boxes.filter(({ inside, level }) => inside && !level.parent).filter(until(NEAR)));
  const top = boxes.filter(until(1));
  const working = (open?.inside?.boxes ?? top).filter(works);
  const seen = working.filter(until(1));
  const middles = (seen.length ? seen : working).map(({ at }) => at[0] + at[2] / 2).sort((a, b) => a - b);
  const middle = middles.length ? middles[(middles.length - 1) >> 1] : first.at[0] + first.at[2] / 2;
  // What works comes before what does not, and the nearest first.
  const beside = (/** @type {BoxView} */ view) => Math.abs(view.at[0] + view.at[2] / 2 - middle);
  const order = top
    .filter(({ inside }) => !inside)
    .sort((one, other) => Number(works(other)) - Number(works(one)) || beside(one) - beside(other));
  let [left, right] = [middle, middle];
  for (const { at } of order) {
    const [from, to] = [Math.min(left, at[0] - AROUND), Math.max(right, at[0] + at[2] + AROUND)];
    if (to - from <= width) [left, right] = [from, to];
  }
  return Math.max(right - width / 2, Math.min(left + width / 2, middle));
}
