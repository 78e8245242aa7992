// Which pieces of a large drawing are on the page: those in view and near it. A browser lays out all that is
// there anew with every box that opens, and thousands of pieces would hold it up.

/** @import { BoxView, EdgeView, StubView } from "./views.js" */

/** @typedef {BoxView | EdgeView | StubView} CulledPiece */

/** A drawing of so many boxes is on the page as a whole. */
const CULLED_FROM = 120;
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
   * Sorts out the pieces for a part of the drawing that is in view now.
   * @param {{ boxes: BoxView[], stubs: StubView[], roving: BoxView | StubView | null }} drawing
   * @param {{ x: number, y: number, width: number, height: number }} view
   */
  look({ boxes, stubs, roving }, { x, y, width, height }) {
    if (!(width > 0 && height > 0)) return;
    const whole = boxes.length < CULLED_FROM;
    const [left, top, right, bottom] = this.kept;
    const covered = whole ? left === -Infinity : left <= x && top <= y && right >= x + width && bottom >= y + height;
    if (covered && !this.fresh) return;
    this.fresh = false;
    const [w, h] = [CULLED_BEYOND * width, CULLED_BEYOND * height];
    this.kept = whole ? [-Infinity, -Infinity, Infinity, Infinity] : [x - w, y - h, x + width + w, y + height + h];
    // What the tab key leads to is always there, and so is what it stands in.
    /** @type {Set<CulledPiece>} */
    const held = new Set();
    if (roving) held.add(roving);
    for (let up = roving?.level.parent ?? null; up; up = up.level.parent) held.add(up);
    for (const view of boxes) {
      const [bx, by, bw, bh] = view.at;
      this.sort(view, held.has(view) || this.near(bx, by, bx + bw, by + bh));
      // Each edge starts at one box.
      for (const edge of view.out) {
        const { x: ex, y: ey } = edge.level;
        const [l, t, r, b] = edge.bounds();
        this.sort(edge, this.near(ex + l, ey + t, ex + r, ey + b));
      }
    }
    for (const stub of stubs) {
      const [sx, sy, sw, sh] = stub.at;
      const [ox, oy, ow, oh] = stub.owner.at;
      const near = this.near(
        Math.min(sx, ox),
        Math.min(sy, oy),
        Math.max(sx + sw, ox + ow),
        Math.max(sy + sh, oy + oh),
      );
      this.sort(stub, held.has(stub) || near);
    }
  }

  /**
   * @param {number} left
   * @param {number} top
   * @param {number} right
   * @param {number} bottom
   */
  near(left, top, right, bottom) {
    const [l, t, r, b] = this.kept;
    return left <= r && right >= l && top <= b && bottom >= t;
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
