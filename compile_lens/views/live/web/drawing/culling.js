// Pieces of a large drawing that are on the page: those in view and near it. A browser lays out everything on the page
// again with every box that opens, and thousands of pieces would slow it down.

/** @import { BoxView, EdgeView, LevelView, StubView } from "./views.js" */

/** @typedef {BoxView | EdgeView | StubView} CulledPiece */
/** @typedef {number[]} Edges left, top, right and bottom */

/** A drawing of so many boxes is on the page as a whole. */
const CULLED_FROM = 64;
/** So much of the view's width and height is kept on each side of it. */
const CULLED_BEYOND = 0.6;

export class Culling {
  /** @param {(piece: CulledPiece) => void} wanted puts a piece on the page, soon */
  constructor(wanted) {
    this.wanted = wanted;
    /** Left, top, right and bottom of what is kept; everything at first. */
    this.kept = [-Infinity, -Infinity, Infinity, Infinity];
    this.fresh = true;
  }

  /** The pieces have moved, or are others. */
  forget() {
    this.fresh = true;
  }

  /**
   * True if all of a drawing is on the page.
   * @param {{ boxes: BoxView[] }} drawing
   */
  whole({ boxes }) {
    return boxes.length < CULLED_FROM;
  }

  /**
   * Sorts out the pieces for a part of the drawing that is in view now. Says whether there was anything to sort.
   * @param {{ boxes: BoxView[], stubs: StubView[], roving: BoxView | StubView | null }} drawing
   * @param {{ x: number, y: number, width: number, height: number }} view
   */
  look({ boxes, stubs, roving }, { x, y, width, height }) {
    if (!(width > 0 && height > 0)) return false;
    const whole = this.whole({ boxes });
    const [left, top, right, bottom] = this.kept;
    const covered = whole ? left === -Infinity : left <= x && top <= y && right >= x + width && bottom >= y + height;
    if (covered && !this.fresh) return false;
    this.fresh = false;
    const [w, h] = [CULLED_BEYOND * width, CULLED_BEYOND * height];
    this.kept = whole ? [-Infinity, -Infinity, Infinity, Infinity] : [x - w, y - h, x + width + w, y + height + h];
    // What the tab key leads to is always there, and so is what it stands in.
    /** @type {Set<CulledPiece>} */
    const needed = new Set();
    if (roving) needed.add(roving);
    for (let up = roving?.level.parent ?? null; up; up = up.level.parent) needed.add(up);
    for (const view of boxes) {
      this.sort(view, needed.has(view) || this.within(view));
      // Each edge starts at one box.
      for (const edge of view.out) this.sort(edge, this.within(edge));
    }
    for (const stub of stubs) this.sort(stub, needed.has(stub) || this.within(stub));
    return true;
  }

  /**
   * True if anything of a piece, or of a level, is near the view.
   * @param {CulledPiece | LevelView} piece
   */
  within(piece) {
    return near(reach(piece), this.kept);
  }

  /**
   * @param {CulledPiece} piece
   * @param {boolean} near
   */
  sort(piece, near) {
    if (piece.far === !near) return;
    piece.far = !near;
    if (near) this.wanted(piece);
    else if (piece.element) piece.element.style.display = "none";
  }
}

/**
 * The extent of a piece, from the corner of the whole drawing.
 * @param {CulledPiece | LevelView} piece
 * @returns {Edges}
 */
export function reach(piece) {
  if ("bounds" in piece) {
    const { x, y } = piece.level;
    const [l, t, r, b] = piece.bounds();
    return [x + l, y + t, x + r, y + b];
  }
  const [x, y, w, h] = piece.at;
  if (!("owner" in piece)) return [x, y, x + w, y + h];
  const [ox, oy, ow, oh] = piece.owner.at;
  return [Math.min(x, ox), Math.min(y, oy), Math.max(x + w, ox + ow), Math.max(y + h, oy + oh)];
}

/**
 * @param {Edges} one
 * @param {Edges} other
 */
export function near([left, top, right, bottom], [l, t, r, b]) {
  return left <= r && right >= l && top <= b && bottom >= t;
}
