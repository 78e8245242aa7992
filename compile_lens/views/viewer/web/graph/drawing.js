// One graph as inline SVG, built piece by piece so that a large one never blocks the page.

import { apartLines, apartPairs } from "../data/apart.js";
import { plural, s, turnOfOthers } from "../dom.js";
import { Culling } from "./culling.js";
import { halfway } from "./curves.js";
import { Lighting } from "./lighting.js";
import { arranged } from "./scene.js";
import {
  barShapes,
  cardShapes,
  curve,
  keepHeading,
  pixel,
  putLabel,
  signShapes,
  stubShapes,
  translate,
} from "./shapes.js";
import { hasSlot, unitShapes, unitsOfBox } from "./unit_shapes.js";
import { BoxView, EdgeView, LevelView, StubView } from "./views.js";
import { topmost } from "./walk.js";

/** @import { Apart } from "../data/apart.js" */
/** @import { Units } from "../data/units.js" */
/** @import { GraphData } from "../types.d.ts" */
/** @import { Halos } from "./halos.js" */
/** @import { Placed } from "./scene.js" */
/** @import { GraphWords } from "./words.js" */

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
    this.lighting = new Lighting(start, pinned, units, lit);
    this.element = s("svg", { class: "graph-svg", role: "graphics-document" });
    this.body = -1;
    /** @type {LevelView | null} */
    this.root = null;
    this.width = 0;
    this.height = 0;
    /** Boxes in the order of the drawing, frames before what they hold. @type {BoxView[]} */
    this.boxes = [];
    /** Those that are open. @type {BoxView[]} */
    this.frames = [];
    /** What is in view. */
    this.seen = { x: 0, y: 0, width: Infinity, height: Infinity };
    /** @type {StubView[]} */
    this.stubs = [];
    /** The closed box that stands for each node of the drawing. @type {(BoxView | undefined)[]} */
    this.shown = [];
    /** @type {WeakMap<Element, BoxView | StubView>} */
    this.byCard = new WeakMap();
    /** What the tab key leads to. @type {BoxView | StubView | null} */
    this.roving = null;
    /** What is to be built, from `next` on. @type {(BoxView | EdgeView | StubView)[]} */
    this.queue = [];
    this.next = 0;
    /** @type {Promise<void> | null} */
    this.building = null;
    this.culling = new Culling((piece) => this.queue.push(piece));
    /** Pairs of groups that stayed apart, by both of them. @type {Map<string, Apart>} */
    this.apart = new Map(apartPairs(data).map((pair) => [`${pair.first} ${pair.second}`, pair]));
  }

  /**
   * Draws a body from scratch; -1 for none.
   * @param {number} body
   * @param {ReadonlySet<number>} open
   */
  show(body, open) {
    if (this.root) this.drop(this.root);
    this.queue = [];
    this.next = 0;
    this.body = body;
    this.root = body < 0 ? null : new LevelView(this.data, body, null);
    if (this.root) this.element.append(this.root.element);
    this.update(open, true);
  }

  /**
   * Puts everything in its place after boxes were opened or closed.
   * @param {ReadonlySet<number>} open
   * @param {boolean} [fresh]
   */
  update(open, fresh = false) {
    this.boxes = [];
    this.frames = [];
    this.stubs = [];
    this.shown = [];
    this.width = 0;
    this.height = 0;
    if (this.root) {
      const placed = arranged(this.data, this.body, open);
      this.width = placed.width;
      this.height = placed.height;
      this.lay(this.root, placed, 0, 0, fresh);
    }
    if (this.roving === null || this.roving.level.gone) this.rove(topmost(this.boxes));
    this.lighting.moved(this.boxes, this.shown);
    this.culling.forget();
    this.begin();
  }

  /**
   * The part of the drawing that is in view now.
   * @param {{ x: number, y: number, width: number, height: number }} view
   */
  look(view) {
    this.seen = view;
    this.culling.look(this, view);
    this.begin();
    for (const frame of this.frames) keepHeading(frame, view.x, view.x + view.width);
  }

  begin() {
    if (this.building === null && this.next < this.queue.length) {
      const building = this.build().finally(() => {
        if (this.building === building) this.building = null;
      });
      this.building = building;
    }
  }

  /**
   * @param {LevelView} level
   * @param {Placed} placed
   * @param {number} x
   * @param {number} y
   * @param {boolean} fresh whether its elements are still to be made
   */
  lay(level, placed, x, y, fresh) {
    level.x = x;
    level.y = y;
    if (fresh) this.queue.push(...level.boxes);
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
        const born = view.inside === null;
        view.inside ??= new LevelView(this.data, inner.placed.body, view);
        view.inside.element.setAttribute("transform", translate(inner.x - bx, inner.y - by));
        this.lay(view.inside, inner.placed, x + inner.x, y + inner.y, born);
      } else {
        for (const local of view.box.members) this.shown[local] = view;
      }
      this.drawBox(view);
    }
    for (const [i, edge] of level.edges.entries()) {
      const { points, label } = placed.edges[i];
      if (edge.points === points || alike(edge.points, points)) continue;
      edge.points = points;
      edge.known = null;
      edge.labelAt = label;
      this.drawEdge(edge);
    }
    for (const [i, stub] of level.stubs.entries()) {
      const { at, points } = placed.stubs[i];
      stub.at = [x + at[0], y + at[1], at[2], at[3]];
      stub.points = points;
      this.stubs.push(stub);
      this.drawStub(stub);
    }
    if (fresh) this.queue.push(...level.edges, ...level.stubs);
    this.halos.draw(level, placed.width);
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
    for (;;) {
      const end = performance.now() + SLICE;
      const last = this.next + SLICE_PIECES;
      while (this.next < Math.min(last, this.queue.length) && performance.now() < end) {
        const view = this.queue[this.next++];
        if (!view.level.gone && !view.far) this.place(view);
      }
      if (this.next >= this.queue.length) break;
      await turnOfOthers();
    }
    this.queue = [];
    this.next = 0;
  }

  /**
   * Puts a piece on the page.
   * @param {BoxView | EdgeView | StubView} view
   */
  place(view) {
    if (view.element) {
      view.element.style.display = "";
      if (view instanceof BoxView) this.drawBox(view);
      else if (view instanceof EdgeView) this.drawEdge(view);
      else this.drawStub(view);
    } else if (view instanceof BoxView) this.makeBox(view);
    else if (view instanceof EdgeView) this.makeEdge(view);
    else this.makeStub(view);
  }

  /**
   * Puts a box or stub on the page at once, with the boxes around it.
   * @param {BoxView | StubView} stop
   */
  need(stop) {
    if (stop.level.parent) this.need(stop.level.parent);
    stop.far = false;
    this.place(stop);
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
    this.next = 0;
  }

  /** @param {BoxView} view */
  makeBox(view) {
    view.units = unitsOfBox(this.units, view.items(this.start));
    view.card = s("g", {
      class: "graph-stop",
      role: "button",
      tabindex: this.roving === view ? 0 : -1,
      "aria-pressed": "false",
    });
    view.element = s("g", { class: "node", "data-item": this.start + view.box.members[0] }, view.card);
    this.byCard.set(view.card, view);
    if (view.box.body >= 0) {
      view.opener = s("g", { class: "graph-opener", role: "button", tabindex: this.roving === view ? 0 : -1 });
      view.element.append(view.opener);
      this.byCard.set(view.opener, view);
    }
    this.drawBox(view);
    this.lighting.paint(view);
    view.level.cards.append(view.element);
  }

  /**
   * The elements of a box as it is now; those that are off the page are drawn when they come back.
   * @param {BoxView} view
   */
  drawBox(view) {
    const { box, element, card, opener, inside } = view;
    if (!element || !card || view.far) return;
    const [x, y, w, h] = view.at;
    const place = translate(x - view.level.x, y - view.level.y);
    if (view.place !== place) element.setAttribute("transform", place);
    view.place = place;
    const drawn = `${pixel(w)} ${pixel(h)}${inside ? " open" : ""}`;
    if (view.drawn === drawn) return;
    view.drawn = drawn;
    element.querySelector(":scope > .graph-frame")?.remove();
    const title = s("title", {}, this.words.tip(box));
    if (inside) {
      element.prepend(s("rect", { class: "graph-frame", width: pixel(w), height: pixel(h), rx: 6 }));
      card.replaceChildren(title, ...barShapes(box, w, plural(box.members.length, "node"), view.same));
      element.append(inside.element);
    } else {
      const banded = view.units.size > 1 && hasSlot(box);
      card.replaceChildren(
        title,
        ...cardShapes(view.shown, w, h, this.words.savedIn(box), banded),
        ...unitShapes(this.units, view.units, box, w, h),
      );
    }
    card.setAttribute("aria-label", this.words.label(box) + (inside ? ", open" : ""));
    if (opener) {
      const word = inside ? "close" : "open";
      opener.setAttribute("transform", inside ? "translate(15 13)" : "translate(2 2)");
      opener.setAttribute("aria-label", `${word} ${box.name.slice(0, 200)}`);
      opener.replaceChildren(s("title", {}, word), ...signShapes(inside !== null));
    }
    if (inside) keepHeading(view, this.seen.x, this.seen.x + this.seen.width);
    this.lighting.paint(view);
  }

  /** @param {EdgeView} view */
  makeEdge(view) {
    const label = view.label && view.labelAt ? s("text", {}, view.label) : null;
    view.element = s("g", { class: "edge" }, s("path", {}), label, this.reason(view));
    this.drawEdge(view);
    this.lighting.paintEdge(view);
    view.level.lines.append(view.element);
  }

  /**
   * Why the two groups at the ends of an edge are not one; null where that is no question.
   * @param {EdgeView} view
   */
  reason({ source, target }) {
    if (source.box.members.length > 1 || target.box.members.length > 1) return null;
    const ends = [source, target].map((box) => box.box.members[0]);
    const pair = this.apart.get(ends.join(" "));
    if (!pair) return null;
    const tip = s("title", {}, [`${source.box.name} → ${target.box.name}`, ...apartLines(pair)].join("\n"));
    return s(
      "text",
      { class: "apart", "data-pair": ends.map((local) => this.start + local).join(" ") },
      `≠ ${pair.reason}`,
      tip,
    );
  }

  /** @param {EdgeView} view */
  drawEdge(view) {
    if (!view.element || view.far) return;
    const [path, ...texts] = view.element.children;
    path.setAttribute("d", curve(view.points));
    const [x, y] = view.labelAt ?? halfway(view.points);
    texts.forEach((text, line) => putLabel(text, [x, y + line * 13]));
  }

  /** @param {StubView} view */
  makeStub(view) {
    const words = this.words.stub(view.others, view.outgoing);
    const label = `${view.owner.box.name.slice(0, 80)}: cut edge ${words}; go there`;
    const tabindex = this.roving === view ? 0 : -1;
    view.card = s("g", { class: "graph-stop", role: "button", tabindex, "aria-label": label }, s("title", {}, words));
    view.card.append(...stubShapes(view.texts, view.at[2], view.at[3]));
    view.element = s("g", { class: "stub" }, s("path", {}), view.card);
    this.byCard.set(view.card, view);
    this.drawStub(view);
    this.lighting.paintStub(view);
    view.level.lines.append(view.element);
  }

  /** @param {StubView} view */
  drawStub(view) {
    if (!view.element || view.far) return;
    const [path, card] = view.element.children;
    path.setAttribute("d", curve(view.points));
    card.setAttribute("transform", translate(view.at[0] - view.level.x, view.at[1] - view.level.y));
  }
}

/**
 * @param {number[]} one
 * @param {number[]} other
 */
function alike(one, other) {
  return one.length === other.length && one.every((value, i) => value === other[i]);
}
