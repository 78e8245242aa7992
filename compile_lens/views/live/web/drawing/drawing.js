// One graph as inline SVG, built piece by piece so that a large one never blocks the page.

import { s, turnOfOthers } from "../dom.js";
import { Culling, near, reach } from "./culling.js";
import { Highlighting } from "./highlighting.js";
import { Pieces } from "./pieces.js";
import { arranged, Shapes } from "./scene.js";
import { keepHeading, translate } from "./shapes.js";
import { BoxView, LevelView } from "./views.js";
import { topmost } from "./walk.js";

/** @import { Units } from "../data/units.js" */
/** @import { GraphData } from "../types.d.ts" */
/** @import { Halos } from "./halos.js" */
/** @import { Piece } from "./pieces.js" */
/** @import { Placed } from "./scene.js" */
/** @import { StubView } from "./views.js" */
/** @import { GraphWords } from "./labels.js" */

/** @typedef {{ x: number, y: number, width: number, height: number }} View what is in view, in the drawing's own pixels */

/** Milliseconds that the building of elements takes at most before others have their turn. */
const SLICE = 20;
/** And so many pieces: the browser has as much to do with them afterwards. */
const SLICE_PIECES = 100;

export class Drawing {
  /**
   * @param {GraphData} data
   * @param {GraphWords} words
   * @param {number} start the item that node 0 is
   * @param {(items: number[]) => boolean} pinned
   * @param {Units} units
   * @param {() => ReadonlySet<number> | null} lit the units that are lit; null for all
   * @param {Halos} halos
   */
  constructor(data, words, start, pinned, units, lit, halos) {
    this.halos = halos;
    this.units = units;
    this.data = data;
    this.words = words;
    this.start = start;
    this.highlighting = new Highlighting(start, pinned, units, lit);
    this.ground = s("g");
    this.element = s("svg", { class: "graph-svg", role: "graphics-document", width: 1, height: 1 }, this.ground);
    this.body = -1;
    /** @type {LevelView | null} */
    this.root = null;
    this.width = 0;
    this.height = 0;
    /** Boxes in the order of the drawing, frames before what they hold. @type {BoxView[]} */
    this.boxes = [];
    /** The boxes that are open. @type {BoxView[]} */
    this.frames = [];
    /** The outermost, and the inside of each that is open. @type {LevelView[]} */
    this.levels = [];
    /** Pieces that have another place in their level. @type {Piece[]} */
    this.moved = [];
    this.shapes = new Shapes();
    /** The part that is in view. */
    this.seen = { x: 0, y: 0, width: Infinity, height: Infinity };
    /** @type {StubView[]} */
    this.stubs = [];
    /** The closed box that stands for each node of the drawing. @type {(BoxView | undefined)[]} */
    this.shown = [];
    /** The part that the tab key leads to. @type {BoxView | StubView | null} */
    this.roving = null;
    /** Parts that are to be built; of a level that is its grounds. @type {(Piece | LevelView)[]} */
    this.queue = [];
    /** @type {Promise<void> | null} */
    this.building = null;
    this.culling = new Culling((piece) => this.queue.push(piece));
    this.pieces = new Pieces(this);
    this.byCard = this.pieces.byCard;
  }

  /**
   * Draws a body from scratch; -1 for none.
   * @param {number} body
   * @param {ReadonlySet<number>} open
   */
  show(body, open) {
    if (this.root) this.drop(this.root);
    this.queue = [];
    this.body = body;
    this.root = body < 0 ? null : new LevelView(this.data, body, null);
    if (this.root) this.ground.append(this.root.element);
    this.update(open);
  }

  /**
   * Puts everything in its place after boxes were opened or closed.
   * @param {ReadonlySet<number>} open
   * @param {((width: number, height: number) => View) | null} [seen] what will be in view of a drawing of that size
   */
  update(open, seen = null) {
    this.boxes = [];
    this.frames = [];
    this.stubs = [];
    this.shown = [];
    this.levels = [];
    this.moved = [];
    this.width = 0;
    this.height = 0;
    if (this.root) {
      const placed = arranged(this.data, this.body, open, this.shapes);
      this.width = placed.width;
      this.height = placed.height;
      this.lay(this.root, placed, 0, 0);
    }
    this.shapes.turn();
    if (this.roving === null || this.roving.level.gone) this.rove(topmost(this.boxes));
    this.culling.forget();
    // What is taken from the page need not be drawn on it.
    if (seen) this.sort(seen(this.width, this.height));
    for (const piece of this.moved) if (!piece.far) this.pieces.draw(piece);
    for (const level of this.levels) if (!level.fresh && level.plain) this.lower(level);
    this.highlighting.moved(this.boxes, this.shown);
    if (seen) this.hurry();
    this.begin();
  }

  /**
   * The part of the drawing that is in view now.
   * @param {View} view
   */
  look(view) {
    this.sort(view);
    this.begin();
    for (const frame of this.frames) if (!frame.far) keepHeading(frame, view.x, view.x + view.width);
  }

  /**
   * Takes what is far from the view from the page, and has what is near it put there, soon.
   * @param {View} view
   */
  sort(view) {
    this.seen = view;
    if (!this.culling.look(this, view)) return;
    for (const level of this.levels) if (level.plain && this.culling.within(level)) this.queue.push(level);
  }

  begin() {
    if (this.building === null && this.queue.length > 0) {
      const building = this.build().finally(() => {
        if (this.building === building) this.building = null;
      });
      this.building = building;
    }
  }

  /**
   * Gives a level its place, and everything in it. Nothing is drawn.
   * @param {LevelView} level
   * @param {Placed} placed
   * @param {number} x
   * @param {number} y
   */
  lay(level, placed, x, y) {
    level.at = [x, y, placed.width, placed.height];
    level.x = x;
    level.y = y;
    this.levels.push(level);
    // Equal layers share what they were stretched to, and so does one with itself as long as nothing opens in it.
    const changed = level.placed !== placed.edges;
    const fresh = level.placed === null;
    level.placed = placed.edges;
    level.plain ||= changed;
    level.fresh = fresh;
    if (fresh) this.queue.push(level, ...level.boxes);
    for (const [i, view] of level.boxes.entries()) {
      const [bx, by, w, h] = placed.boxes[i];
      view.at = [x + bx, y + by, w, h];
      this.boxes.push(view);
      const inner = placed.inner.get(i);
      if (!inner && view.inside) {
        this.drop(view.inside);
        view.inside = null;
      }
      if (inner) {
        this.frames.push(view);
        view.inside ??= new LevelView(this.data, inner.placed.body, view);
        if (changed) view.inside.element.setAttribute("transform", translate(inner.x - bx, inner.y - by));
        this.lay(view.inside, inner.placed, x + inner.x, y + inner.y);
      } else {
        for (const local of view.box.members) this.shown[local] = view;
      }
      if (changed) this.moved.push(view);
    }
    if (changed)
      for (const [i, edge] of level.edges.entries()) {
        const { points, label } = placed.edges[i];
        if (edge.points === points || alike(edge.points, points)) continue;
        edge.points = points;
        edge.known = null;
        edge.labelAt = label;
        this.moved.push(edge);
      }
    for (const [i, stub] of level.stubs.entries()) {
      const { at, points } = placed.stubs[i];
      stub.at = [x + at[0], y + at[1], at[2], at[3]];
      stub.points = points;
      this.stubs.push(stub);
      if (changed) this.moved.push(stub);
    }
    if (fresh) this.queue.push(...level.edges, ...level.stubs);
  }

  /**
   * The grounds of a level, if it is near the view; else they wait until it is.
   * @param {LevelView} level
   */
  lower(level) {
    if (this.culling.within(level)) this.halos.draw(level, level.at[2]);
    else level.halos.replaceChildren();
    level.plain = !this.culling.within(level);
  }

  /** @param {LevelView} level */
  drop(level) {
    level.gone = true;
    level.element.remove();
    for (const view of level.boxes) if (view.inside) this.drop(view.inside);
  }

  /** Makes the elements that are still missing, a slice of time after the other. */
  async build() {
    // Who asked for the drawing may still measure the page, which is quick while there is nothing on it.
    await null;
    while (this.queue.length > 0) {
      this.slice(this.queue);
      if (this.queue.length > 0) await turnOfOthers();
    }
  }

  /**
   * Makes as many of some pieces as one turn has time for, and takes them from the list.
   * @param {(Piece | LevelView)[]} pieces
   */
  slice(pieces) {
    const end = performance.now() + SLICE;
    let next = 0;
    for (let placed = 0; next < pieces.length && placed < SLICE_PIECES && performance.now() < end; next++) {
      const piece = pieces[next];
      if (piece instanceof LevelView) {
        if (!piece.gone && piece.plain) this.lower(piece);
      } else if (!piece.level.gone && !piece.far) {
        this.pieces.place(piece);
        placed += 1;
      }
    }
    pieces.splice(0, next);
  }

  /** Builds at once what is in view, so that it is there when the page is laid out, and the rest behind it. */
  hurry() {
    if (this.culling.whole(this)) return;
    const { x, y, width, height } = this.seen;
    const seen = [x, y, x + width, y + height];
    /** @param {Piece | LevelView} piece */
    const first = (piece) => near(reach(piece), seen);
    const here = this.queue.filter(first);
    const later = this.queue.filter((piece) => !first(piece));
    this.slice(here);
    this.queue = [...here, ...later];
  }

  /** Puts all on the page at once: what is printed whole. */
  complete() {
    const { seen, width, height } = this;
    this.sort({ x: 0, y: 0, width, height });
    this.seen = seen;
    while (this.queue.length > 0) this.slice(this.queue);
  }

  /**
   * Puts a box or stub on the page at once, with the boxes around it.
   * @param {BoxView | StubView} stop
   */
  need(stop) {
    if (stop.level.parent) this.need(stop.level.parent);
    stop.far = false;
    this.pieces.place(stop);
  }

  /**
   * Makes a box or stub the one that the tab key leads to.
   * @param {BoxView | StubView | null} stop
   */
  rove(stop) {
    for (const [view, index] of /** @type {const} */ ([
      [this.roving, "-1"],
      [stop, "0"],
    ])) {
      view?.card?.setAttribute("tabindex", index);
      if (view instanceof BoxView) view.opener?.setAttribute("tabindex", index);
    }
    this.roving = stop;
  }

  /** Waits until all elements are there. */
  async settled() {
    while (this.building) await this.building;
  }

  /** Stops building. */
  close() {
    this.queue = [];
  }
}

/**
 * @param {number[]} one
 * @param {number[]} other
 */
function alike(one, other) {
  return one.length === other.length && one.every((value, i) => value === other[i]);
}
