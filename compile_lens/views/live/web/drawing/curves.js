// Curves of edges whose boxes have moved or grown.

/** @import { Stretch } from "./stretch.js" */

/** @typedef {[number, number, number, number]} Rectangle x and y of the top left corner, width and height */

/** Ends of edges are this close to the border of their box, in pixels, for want of digits. */
const NEAR_BORDER = 1;

/**
 * A curve in its new place, its ends at the same spots of their boxes as before.
 * @param {number[]} points
 * @param {Stretch} across
 * @param {Stretch} down
 * @param {Rectangle} source
 * @param {Rectangle} newSource
 * @param {Rectangle} target
 * @param {Rectangle} newTarget
 * @returns {number[]}
 */
export function carried(points, across, down, source, newSource, target, newTarget) {
  const { chain, joints } = cutAt(points, down.knots);
  for (let i = 0; i < chain.length; i += 2) {
    chain[i] = across.at(chain[i]);
    chain[i + 1] = down.at(chain[i + 1]);
  }
  const last = points.length - 2;
  const end = chain.length - 2;
  const startX = attached(points[0], source[0], source[2], newSource[0], newSource[2]);
  const startY = attached(points[1], source[1], source[3], newSource[1], newSource[3]);
  const endX = attached(points[last], target[0], target[2], newTarget[0], newTarget[2]);
  const endY = attached(points[last + 1], target[1], target[3], newTarget[1], newTarget[3]);
  // The first handle goes with its end, so that the curve leaves the box in the direction it had.
  chain[2] += startX - chain[0];
  chain[end - 2] += endX - chain[end];
  chain[0] = startX;
  chain[end] = endX;
  // A box that is lower than the open one beside it has blank ground above and below: straight lines cross it.
  if (Math.abs(endY - chain[end + 1]) > 0.05) {
    joints.push(chain.length / 2 - 1);
    chain.push(...straight(endX, chain[end + 1], endY), endX, endY);
  } else chain[end + 1] = endY;
  if (Math.abs(startY - chain[1]) > 0.05) {
    chain.unshift(startX, startY, ...straight(startX, startY, chain[1]));
    for (let i = 0; i < joints.length; i++) joints[i] += 3;
    joints.push(3);
  } else chain[1] = startY;
  for (const joint of joints) smooth(chain, 2 * joint);
  return chain;
}

/**
 * The place of a label: as far from its curve as before, else it would drift away where there is more room.
 * @param {[number, number]} label
 * @param {number[]} points
 * @param {number[]} moved
 * @param {Stretch} across
 * @param {Stretch} down
 * @returns {[number, number]}
 */
export function besideCurve([x, y], points, moved, across, down) {
  const height = down.at(y);
  const [before, after] = [placeAt(points, y), placeAt(moved, height)];
  return [before === null || after === null ? across.at(x) : after + (x - before), height];
}

/**
 * The place where a chain of curves first passes a height; null if it does not.
 * @param {number[]} points
 * @param {number} height
 */
function placeAt(points, height) {
  for (let i = 0; i + 7 < points.length; i += 6) {
    const piece = points.slice(i, i + 8);
    if (piece[1] === height) return piece[0];
    const [t] = passes(piece, [height]);
    if (t !== undefined) return halves(piece, t)[0][6];
  }
  return null;
}

/**
 * The two handles of a vertical line.
 * @param {number} x
 * @param {number} from
 * @param {number} to
 */
function straight(x, from, to) {
  return [x, from + (to - from) / 3, x, to - (to - from) / 3];
}

/**
 * A place on the side of a box after the box has moved or grown.
 * @param {number} at
 * @param {number} from
 * @param {number} length
 * @param {number} newFrom
 * @param {number} newLength
 */
function attached(at, from, length, newFrom, newLength) {
  if (at <= from + NEAR_BORDER) return newFrom + (at - from);
  if (at >= from + length - NEAR_BORDER) return newFrom + newLength + (at - (from + length));
  return newFrom + ((at - from) * newLength) / length;
}

/**
 * A chain of cubic curves, cut where it passes one of some heights, so that each piece can be stretched evenly.
 * `joints` are the numbers of the new points on the curve.
 * @param {number[]} points
 * @param {number[]} heights
 * @returns {{ chain: number[], joints: number[] }}
 */
function cutAt(points, heights) {
  const chain = [points[0], points[1]];
  /** @type {number[]} */
  const joints = [];
  for (let i = 0; i + 7 < points.length; i += 6) {
    let piece = points.slice(i, i + 8);
    let done = 0;
    for (const t of passes(piece, heights)) {
      const [head, tail] = halves(piece, (t - done) / (1 - done));
      chain.push(...head.slice(2));
      joints.push(chain.length / 2 - 1);
      piece = tail;
      done = t;
    }
    chain.push(...piece.slice(2));
  }
  return { chain, joints };
}

/**
 * The places on a cubic curve (0 to 1, ends left out) where one of the heights is passed, in order.
 * @param {number[]} piece
 * @param {number[]} heights
 * @returns {number[]}
 */
function passes(piece, heights) {
  const [y0, y1, y2, y3] = [piece[1], piece[3], piece[5], piece[7]];
  const low = Math.min(y0, y1, y2, y3);
  const high = Math.max(y0, y1, y2, y3);
  const crossings = [];
  const y = (/** @type {number} */ t) => {
    const r = 1 - t;
    return r * r * r * y0 + 3 * r * r * t * y1 + 3 * r * t * t * y2 + t * t * t * y3;
  };
  const steps = 8;
  for (const height of heights) {
    if (height <= low || height >= high) continue;
    for (let step = 0; step < steps; step++) {
      let [from, to] = [step / steps, (step + 1) / steps];
      const below = y(from) < height;
      if (below === y(to) < height) continue;
      for (let turn = 0; turn < 24; turn++) {
        const middle = (from + to) / 2;
        if (y(middle) < height === below) from = middle;
        else to = middle;
      }
      if (from > 1e-4 && from < 1 - 1e-4) crossings.push(from);
    }
  }
  return crossings.sort((a, b) => a - b).filter((t, i, all) => i === 0 || t - all[i - 1] > 1e-4);
}

/**
 * A cubic curve in two, after de Casteljau.
 * @param {number[]} p
 * @param {number} t
 * @returns {[number[], number[]]}
 */
function halves(p, t) {
  const between = (/** @type {number[]} */ a, /** @type {number[]} */ b) => [
    a[0] + (b[0] - a[0]) * t,
    a[1] + (b[1] - a[1]) * t,
  ];
  const [a, b, c, d] = [p.slice(0, 2), p.slice(2, 4), p.slice(4, 6), p.slice(6, 8)];
  const [ab, bc, cd] = [between(a, b), between(b, c), between(c, d)];
  const [abc, bcd] = [between(ab, bc), between(bc, cd)];
  const middle = between(abc, bcd);
  return [
    [...a, ...ab, ...abc, ...middle],
    [...middle, ...bcd, ...cd, ...d],
  ];
}

/**
 * Turns the two handles of a point on the curve into one line; the longer one has more say.
 * @param {number[]} chain
 * @param {number} at
 */
function smooth(chain, at) {
  const [x, y] = [chain[at], chain[at + 1]];
  const before = Math.hypot(x - chain[at - 2], y - chain[at - 1]);
  const after = Math.hypot(chain[at + 2] - x, chain[at + 3] - y);
  const [dx, dy] = [chain[at + 2] - chain[at - 2], chain[at + 3] - chain[at - 1]];
  const length = Math.hypot(dx, dy);
  if (before === 0 || after === 0 || length === 0) return;
  chain[at - 2] = x - (dx / length) * before;
  chain[at - 1] = y - (dy / length) * before;
  chain[at + 2] = x + (dx / length) * after;
  chain[at + 3] = y + (dy / length) * after;
}

/**
 * The middle of a chain of curves: a point on it.
 * @param {number[]} points
 * @returns {[number, number]}
 */
export function halfway(points) {
  const at = Math.floor(points.length / 4) * 2;
  return [points[at] ?? 0, points[at + 1] ?? 0];
}
