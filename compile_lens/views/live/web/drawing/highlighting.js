// Highlighting of a drawing: pieces that are lit, found by the search, or dimmed. Only pieces that change are touched.

import { COLOURS, HOVER, OWN, SELF, isNeeded } from "../data/selection.js";
import { lookOf } from "../data/units.js";
import { grouped, s } from "../dom.js";
import { pixel, tagShapes } from "./shapes.js";
import { isPlain } from "./labels.js";

/** @import { Units } from "../data/units.js" */
/** @import { Marks } from "../data/app.d.ts" */
/** @import { BoxView, EdgeView, StubView } from "./views.js" */

/** The bits of a mark that are colours of pins. */
const ALL_COLOURS = (1 << COLOURS) - 1;

export class Highlighting {
  /**
   * @param {number} start the item that node 0 is
   * @param {(items: number[]) => boolean} pinned
   * @param {Units} units
   * @param {() => ReadonlySet<number> | null} litUnits null for all
   */
  constructor(start, pinned, units, litUnits) {
    this.start = start;
    this.units = units;
    this.litUnits = litUnits;
    this.pinned = pinned;
    /** Boxes on the page, frames included. @type {BoxView[]} */
    this.boxes = [];
    /** The closed box that stands for each node of the drawing. @type {(BoxView | undefined)[]} */
    this.shown = [];
    /** Boxes that are lit, frames around them included, and edges. @type {Map<BoxView, number>} */
    this.lit = new Map();
    /** @type {Map<EdgeView, number>} */
    this.litEdges = new Map();
    /** @type {Marks} */
    this.marks = new Map();
    /** The nodes that the search found. @type {number[]} */
    this.found = [];
    /** The nodes that are not dimmed; null for all. @type {ReadonlySet<number> | null} */
    this.near = null;
    /** The box of the match that the search is at. @type {BoxView | null} */
    this.current = null;
  }

  /**
   * Other boxes are on the page now.
   * @param {BoxView[]} boxes
   * @param {(BoxView | undefined)[]} shown
   */
  moved(boxes, shown) {
    this.boxes = boxes;
    this.shown = shown;
    const here = new Set(boxes);
    for (const view of this.lit.keys()) if (!here.has(view)) this.lit.delete(view);
    for (const edge of this.litEdges.keys()) if (edge.level.gone) this.litEdges.delete(edge);
    if (this.current && !here.has(this.current)) this.current = null;
    this.dim(this.near);
    this.find(this.found);
    this.mark(this.marks);
  }

  /** @param {Marks} marks */
  mark(marks) {
    this.marks = marks;
    /** @type {Map<BoxView, number>} */
    const lit = new Map();
    const light = (/** @type {number} */ local, /** @type {number} */ bits) => {
      const view = bits ? this.shown[local] : undefined;
      if (view) lit.set(view, (lit.get(view) ?? 0) | bits);
    };
    if (marks.size <= this.shown.length) for (const [item, bits] of marks) light(item - this.start, bits);
    else for (let local = 0; local < this.shown.length; local++) light(local, marks.get(this.start + local) ?? 0);
    // An open box carries the light of what is in it to the edges that end at its frame.
    for (const [view, bits] of [...lit]) {
      for (let up = view.level.parent; up; up = up.level.parent) lit.set(up, (lit.get(up) ?? 0) | (bits & ~SELF));
    }
    for (const view of this.lit.keys()) if (!lit.has(view)) this.light(view, 0);
    for (const [view, bits] of lit) this.light(view, bits);
    this.lit = lit;
    /** @type {Map<EdgeView, number>} */
    const edges = new Map();
    for (const [view, bits] of lit) {
      for (const edge of view.out) {
        const common = bits & (lit.get(edge.target) ?? 0) & ~SELF;
        if (common & ~OWN) edges.set(edge, common);
      }
    }
    for (const edge of this.litEdges.keys()) if (!edges.has(edge)) this.lightEdge(edge, 0);
    for (const [edge, bits] of edges) this.lightEdge(edge, bits);
    this.litEdges = edges;
  }

  /**
   * @param {BoxView} view
   * @param {number} bits
   */
  light(view, bits) {
    // A frame itself is lit only while it is pinned: its inside shows the rest.
    const pinned = bits !== 0 && (view.inside !== null || (bits & SELF) !== 0) && this.pinned(view.items(this.start));
    const own = view.inside === null ? bits : pinned ? bits | SELF : 0;
    if (view.bits === own && view.pinned === pinned && (own === 0 || view.units.size === 0)) return;
    view.bits = own;
    view.pinned = pinned;
    this.paint(view);
  }

  /**
   * @param {EdgeView} edge
   * @param {number} bits
   */
  lightEdge(edge, bits) {
    if (edge.bits === bits) return;
    edge.bits = bits;
    this.paintEdge(edge);
  }

  /**
   * Outlines the boxes of nodes that a search found, and counts them by box.
   * @param {number[]} locals
   */
  find(locals) {
    this.found = locals;
    /** @type {Map<BoxView, number>} */
    const hits = new Map();
    for (const local of locals) {
      const view = this.shown[local];
      if (view) hits.set(view, (hits.get(view) ?? 0) + 1);
    }
    for (const view of this.boxes) {
      const count = hits.get(view) ?? 0;
      if (view.hits === count) continue;
      view.hits = count;
      this.paint(view);
    }
  }

  /** @param {BoxView | null} view */
  setCurrent(view) {
    const before = this.current;
    this.current = view;
    for (const box of [before, view]) {
      if (!box) continue;
      box.current = box === view;
      this.paint(box);
    }
  }

  /**
   * Dims everything but some nodes; null ends it.
   * @param {ReadonlySet<number> | null} nodes
   */
  dim(nodes) {
    this.near = nodes;
    for (const view of this.boxes) {
      const near = nodes !== null && view.box.members.some((local) => nodes.has(local));
      if (view.near === near) continue;
      view.near = near;
      this.paint(view);
      for (const edge of [...view.into, ...view.out]) this.paintEdge(edge);
      for (const stub of view.stubs) this.paintStub(stub);
    }
  }

  /** @param {BoxView} view */
  paint(view) {
    const { element, card } = view;
    if (!element || !card) return;
    let states = view.inside ? " open" : "";
    if (view.near) states += " near";
    if (view.flashing) states += " flash";
    setStates(view, states + this.unitClasses(view) + litClasses(view.bits));
    const pressed = String(view.pinned);
    if (card.getAttribute("aria-pressed") !== pressed) card.setAttribute("aria-pressed", pressed);
    if (view.units.size > 1) this.paintBand(view);
    this.paintExtra(view);
  }

  /** @param {BoxView} view */
  unitClasses({ units, bits }) {
    if (units.size === 0) return "";
    if (units.size > 1) return " units";
    const [unit] = units.keys();
    const lit = this.litUnits();
    // What is lit for another unit's sake has no ground of its own.
    const other = bits && lit && !lit.has(unit) ? " other" : "";
    return ` in-unit ${lookOf(this.units.all[unit])}${other}`;
  }

  /** Keeps only the colours of lit units in a band that is lit. @param {BoxView} view */
  paintBand({ card, bits }) {
    const lit = bits ? this.litUnits() : null;
    for (const part of card?.querySelectorAll(".seg") ?? [])
      part.classList.toggle("off", lit !== null && !lit.has(Number(part.getAttribute("data-unit"))));
  }

  /**
   * The ring around a match, the count of matches in a closed box, what is lit for a derivative alone.
   * @param {BoxView} view
   */
  paintExtra(view) {
    const needed = view.inside === null && isNeeded(view.bits);
    if (!view.hits && !view.current && !needed && view.extra === null) return;
    const hits = view.inside ? 0 : view.hits;
    const [, , w, h] = view.at;
    const shown = hits > 0 || view.current || needed;
    const key = shown ? `${hits} ${view.current} ${needed} ${pixel(w)} ${pixel(h)}` : "";
    if (view.extraDrawn === key || !view.element) return;
    view.extraDrawn = key;
    view.extra?.remove();
    view.extra = null;
    if (!shown) return;
    const extra = s("g", { class: "extra", "aria-hidden": "true" });
    if (hits || view.current) {
      const name = view.current ? "ring at" : "ring";
      extra.append(s("rect", { class: name, x: -4, y: -4, width: pixel(w + 8), height: pixel(h + 8), rx: 9 }));
    }
    if (needed) extra.append(...tagShapes("needed", "derivative", w + 7, -9));
    if (hits && !isPlain(view.box)) extra.append(...tagShapes("tally", `${grouped(hits)} found`, w + 7, h - 5));
    view.element.append(extra);
    view.extra = extra;
  }

  /** @param {EdgeView} edge */
  paintEdge(edge) {
    const near = edge.source.near && edge.target.near;
    setStates(edge, (near ? " near" : "") + litClasses(edge.bits));
  }

  /** @param {StubView} stub */
  paintStub(stub) {
    setStates(stub, stub.owner.near ? " near" : "");
  }
}

/**
 * Gives a piece the classes of its state in place of those it had. Its other classes stay, whoever set them.
 * @param {BoxView | EdgeView | StubView} view
 * @param {string} states each after a blank
 */
export function setStates(view, states) {
  if (!view.element || view.states === states) return;
  const { classList } = view.element;
  classList.remove(...view.states.split(" ").slice(1));
  classList.add(...states.split(" ").slice(1));
  view.states = states;
}

/**
 * The classes of something lit, each after a blank.
 * @param {number} bits
 */
function litClasses(bits) {
  if (!bits) return "";
  const colours = bits & ALL_COLOURS;
  // The lowest colour is the one of the lowest bit.
  const pin = colours ? ` lit-pins lit-pin-${31 - Math.clz32(colours & -colours)}` : "";
  return ` lit${pin}${bits & HOVER ? " lit-hover" : ""}${bits & SELF ? " lit-self" : ""}${isNeeded(bits) ? " lit-needed" : ""}`;
}
