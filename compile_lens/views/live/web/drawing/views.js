// The pieces of a drawing while it is on the page, and their places.

import { grouped, plural, s, shortened } from "../dom.js";
import { alike } from "./repeated_bodies.js";

/** @import { BodyBox, GraphData } from "../types.d.ts" */
/** @import { Rectangle } from "./curves.js" */

/** @type {Map<number, number>} */
const NO_UNITS = new Map();

/** A body on the page: the outermost one, or the inside of an open box. */
export class LevelView {
  /**
   * @param {GraphData} data
   * @param {number} body
   * @param {BoxView | null} parent the open box around it
   */
  constructor(data, body, parent) {
    const { boxes, labels, stubs, layout: number } = data.bodies[body];
    const layout = data.layouts[number];
    this.parent = parent;
    const { like, near } = alike(data, body);
    /** Its boxes that look like one before them, by the body inside. */
    this.like = like;
    /** Those that nearly look like another. */
    this.near = near;
    this.x = 0;
    this.y = 0;
    /** @type {Rectangle} */
    this.at = [0, 0, 0, 0];
    /** The layout of its edges: another one whenever anything in it moves. @type {object | null} */
    this.placed = null;
    /** True if its pieces are still to be made. */
    this.fresh = true;
    /** True if its grounds are not, or no longer, drawn. */
    this.plain = true;
    /** True if it was taken from the page. */
    this.gone = false;
    this.boxes = boxes.map((box) => new BoxView(this, box));
    this.edges = layout.edges.map(
      ({ ends }, i) => new EdgeView(this, this.boxes[ends[0]], this.boxes[ends[1]], labels[i]),
    );
    this.stubs = layout.stubs.map(({ box, outgoing }, i) => new StubView(this, this.boxes[box], outgoing, stubs[i]));
    this.lines = s("g", { class: "lines" });
    this.cards = s("g", { class: "cards" });
    this.halos = s("g", { class: "halos" });
    this.element = s("g", { class: "level" }, this.halos, this.lines, this.cards);
  }
}

/** The number of nodes in a box, after what they cost where that is known. @param {BodyBox} box */
export function heldWords({ lines, members }) {
  const cost = lines.find(([, role]) => role === "cost");
  return [...(cost ? [cost[0]] : []), plural(members.length, "node")].join(", ");
}

/** A node or a group of nodes. Its place is counted from the corner of the whole drawing. */
export class BoxView {
  /**
   * @param {LevelView} level
   * @param {BodyBox} box
   */
  constructor(level, box) {
    this.level = level;
    this.box = box;
    /** @type {Rectangle} */
    this.at = [0, 0, 0, 0];
    /** The level inside, while it is open. @type {LevelView | null} */
    this.inside = null;
    /** @type {EdgeView[]} */
    this.into = [];
    /** @type {EdgeView[]} */
    this.out = [];
    /** @type {StubView[]} */
    this.stubs = [];
    /** @type {number[] | null} */
    this.itemsKnown = null;
    /** The units of its nodes, each with how many of them came from it. @type {Map<number, number>} */
    this.units = NO_UNITS;
    this.bits = 0;
    /** Its classes that change with its state, each after a blank. */
    this.states = "";
    this.pinned = false;
    this.hits = 0;
    this.near = false;
    this.current = false;
    this.flashing = false;
    /** True if it is kept off the page, because it is far from what is in view. */
    this.far = false;
    /** The shapes that its elements show, and their places. */
    this.drawn = "";
    this.place = "";
    this.extraDrawn = "";
    /** @type {SVGGElement | null} */
    this.element = null;
    /** The element that takes the focus. @type {SVGGElement | null} */
    this.card = null;
    /** @type {SVGGElement | null} */
    this.opener = null;
    /** @type {SVGGElement | null} */
    this.extra = null;
  }

  /** The box with the lines that it shows: of one that looks like another, that it does. @returns {BodyBox} */
  get shown() {
    const first = this.level.like.get(this.box.body);
    const count = `${grouped(this.box.members.length)} nodes`;
    const words = first ? `= ${shortened(first.name, 16)}, ${count}` : this.similar;
    if (!words) return this.box;
    return { ...this.box, lines: this.box.lines.map(([text, role]) => [text.replace(/^holds .*/, words), role]) };
  }

  /** The box that nearly computes the same, in words; "" for none. */
  get similar() {
    const near = this.level.near.get(this.box.body);
    return near ? `≈ ${shortened(near.box.name, 16)}, differs in ${plural(near.nodes, "node")}` : "";
  }

  /** The boxes that compute the same as this one, the first of them, in words; "" for none. */
  get same() {
    const { like, boxes } = this.level;
    const names = boxes.filter(({ box }) => like.get(box.body) === this.box).map(({ box }) => shortened(box.name, 16));
    if (names.length === 0) return this.similar;
    if (names.length < 3) return names.map((name) => `= ${name}`).join(" ");
    return `= ${names[0]} … ${names[names.length - 1].replace(/^.*\./, "")}`;
  }

  /**
   * The items that it stands for.
   * @param {number} start the item that node 0 is
   */
  items(start) {
    this.itemsKnown ??= this.box.members.map((local) => start + local);
    return this.itemsKnown;
  }
}

export class EdgeView {
  /**
   * @param {LevelView} level
   * @param {BoxView} source
   * @param {BoxView} target
   * @param {string} label
   */
  constructor(level, source, target, label) {
    this.level = level;
    this.source = source;
    this.target = target;
    this.label = label;
    /** @type {number[]} */
    this.points = [];
    /** @type {[number, number] | null} */
    this.labelAt = null;
    /** Left, top, right and bottom of the points, once they are asked for. @type {number[] | null} */
    this.known = null;
    this.far = false;
    this.bits = 0;
    this.states = "";
    /** @type {SVGGElement | null} */
    this.element = null;
    source.out.push(this);
    target.into.push(this);
  }

  /** Left, top, right and bottom, from the corner of its level. */
  bounds() {
    if (this.known === null) {
      this.known = [Infinity, Infinity, -Infinity, -Infinity];
      for (let i = 0; i + 1 < this.points.length; i += 2) {
        const [x, y] = [this.points[i], this.points[i + 1]];
        this.known[0] = Math.min(this.known[0], x);
        this.known[1] = Math.min(this.known[1], y);
        this.known[2] = Math.max(this.known[2], x);
        this.known[3] = Math.max(this.known[3], y);
      }
    }
    return this.known;
  }
}

/** The cut edges on one side of a box. */
export class StubView {
  /**
   * @param {LevelView} level
   * @param {BoxView} box
   * @param {boolean} outgoing
   * @param {{ others: string[], lines: string[] }} text
   */
  constructor(level, box, outgoing, text) {
    this.level = level;
    this.owner = box;
    this.outgoing = outgoing;
    this.others = text.others;
    this.texts = text.lines;
    /** The number of its far end that was visited last. */
    this.visited = -1;
    /** @type {Rectangle} */
    this.at = [0, 0, 0, 0];
    /** @type {number[]} */
    this.points = [];
    this.far = false;
    this.states = "";
    /** @type {SVGGElement | null} */
    this.element = null;
    /** The element that takes the focus. @type {SVGGElement | null} */
    this.card = null;
    box.stubs.push(this);
  }
}
