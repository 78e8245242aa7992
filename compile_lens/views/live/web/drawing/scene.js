// The layout once some boxes are open. An open box grows to the size of its inside; boxes below it move down and boxes
// right of it move right, so that the drawing around it keeps its shape.

import { besideCurve, carried } from "./curves.js";
import { Stretch } from "./stretch.js";

/** @import { BodyBox, GraphData, Layout, Scene } from "../types.d.ts" */
/** @import { Rectangle } from "./curves.js" */

/** @typedef {{ points: number[], label: [number, number] | null }} PlacedEdge */
/** @typedef {{ at: Rectangle, points: number[] }} PlacedStub */

/**
 * A body with coordinates, counted from its own top left corner.
 * @typedef {object} Placed
 * @property {number} body
 * @property {number} width
 * @property {number} height
 * @property {Rectangle[]} boxes frames included
 * @property {PlacedEdge[]} edges
 * @property {PlacedStub[]} stubs
 * @property {Map<number, { placed: Placed, x: number, y: number }>} inner what is in the open boxes, and where
 */

/** Height of the bar with the title of an open box, and the blank border around its inside, in pixels. */
export const FRAME_BAR = 26;
export const FRAME_BORDER = 12;

/** The most boxes that are drawn at once. */
export const MOST_BOXES = 1500;

/** Scenes with at most so many boxes open whole. */
const FEW_BOXES = 60;
/** Room for the sign that closes an open box, beside its title. */
const SIGN_ROOM = 24;

/** @typedef {Omit<Placed, "body" | "inner"> & { at: Map<number, [number, number]> }} Shape a layout, stretched */

/** The layouts that were stretched for a drawing, so that equal layers are stretched once, and again if they change. */
export class Shapes {
  constructor() {
    /** @type {Map<string, Shape>} */
    this.before = new Map();
    /** @type {Map<string, Shape>} */
    this.now = new Map();
  }

  /** Another drawing begins: what the last one had no use for is forgotten. */
  turn() {
    this.before = this.now;
    this.now = new Map();
  }

  /**
   * @param {number} number of the layout
   * @param {Layout} layout
   * @param {Map<number, Placed>} insides
   */
  of(number, layout, insides) {
    const sizes = [...insides].map(([i, { width, height }]) => `${i} ${width} ${height}`);
    const key = [number, ...sizes].join();
    const shape = this.now.get(key) ?? this.before.get(key) ?? spread(layout, insides);
    this.now.set(key, shape);
    return shape;
  }
}

/**
 * Coordinates of a body in which the boxes around the bodies in `open` are open. With none open they are the
 * layout's own.
 * @param {Pick<GraphData, "bodies" | "layouts">} data
 * @param {number} body
 * @param {ReadonlySet<number>} open
 * @param {Shapes} [shapes] what is known already
 * @returns {Placed}
 */
export function arranged(data, body, open, shapes = new Shapes()) {
  const { boxes, layout: number } = data.bodies[body];
  const layout = data.layouts[number];
  /** @type {Map<number, Placed>} */
  const insides = new Map();
  boxes.forEach((box, i) => {
    if (box.body >= 0 && open.has(box.body)) insides.set(i, arranged(data, box.body, open, shapes));
  });
  const { width, height } = layout;
  if (insides.size === 0)
    return { body, width, height, boxes: layout.boxes, edges: layout.edges, stubs: layout.stubs, inner: new Map() };
  const { at, ...shape } = shapes.of(number, layout, insides);
  const inner = new Map();
  for (const [i, [x, y]] of at) inner.set(i, { placed: insides.get(i), x, y });
  return { body, ...shape, inner };
}

/**
 * @param {Layout} layout
 * @param {Map<number, Placed>} insides
 * @returns {Shape}
 */
function spread(layout, insides) {
  /** @type {Map<number, [number, number]>} */
  const sizes = new Map();
  for (const [i, inside] of insides) {
    const [, , w, h] = layout.boxes[i];
    sizes.set(i, [
      Math.max(w + SIGN_ROOM, inside.width + 2 * FRAME_BORDER),
      Math.max(h, inside.height + 2 * FRAME_BORDER + FRAME_BAR),
    ]);
  }
  const across = new Stretch(
    [...sizes].map(([i, [w]]) => [layout.boxes[i][0], layout.boxes[i][0] + layout.boxes[i][2], w]),
  );
  const down = new Stretch(
    [...sizes].map(([i, [, h]]) => [layout.boxes[i][1], layout.boxes[i][1] + layout.boxes[i][3], h]),
  );
  const boxes = layout.boxes.map((box, i) => {
    const [w, h] = sizes.get(i) ?? [box[2], box[3]];
    return moved(box, across, down, w, h);
  });
  const edges = layout.edges.map(({ ends: [from, to], points, label }) => {
    const chain = carried(points, across, down, layout.boxes[from], boxes[from], layout.boxes[to], boxes[to]);
    return { points: chain, label: label && besideCurve(label, points, chain, across, down) };
  });
  const stubs = layout.stubs.map((stub) => {
    const at = moved(stub.at, across, down, stub.at[2], stub.at[3]);
    const [own, far] = [layout.boxes[stub.box], boxes[stub.box]];
    const points = stub.outgoing
      ? carried(stub.points, across, down, own, far, stub.at, at)
      : carried(stub.points, across, down, stub.at, at, own, far);
    return { at, points };
  });
  /** @type {Map<number, [number, number]>} */
  const at = new Map();
  for (const [i, { width, height }] of insides) {
    const [x, y, w, h] = boxes[i];
    at.set(i, [x + (w - width) / 2, y + FRAME_BAR + (h - FRAME_BAR - height) / 2]);
  }
  return { width: across.at(layout.width), height: down.at(layout.height), boxes, edges, stubs, at };
}

/**
 * A box in its new place: within the image of its old one, as near to the image of its middle as that allows.
 * Images of boxes apart are apart, so boxes stay apart.
 * @param {Rectangle} box
 * @param {Stretch} across
 * @param {Stretch} down
 * @param {number} w
 * @param {number} h
 * @returns {Rectangle}
 */
function moved([x, y, oldW, oldH], across, down, w, h) {
  return [centred(x, oldW, across, w), centred(y, oldH, down, h), w, h];
}

/**
 * @param {number} from
 * @param {number} length
 * @param {Stretch} stretch
 * @param {number} now
 */
function centred(from, length, stretch, now) {
  const [low, high] = [stretch.at(from), stretch.at(from + length)];
  return Math.max(low, Math.min(high - now, stretch.at(from + length / 2) - now / 2));
}

/**
 * The form that a scene opens in.
 * @param {Pick<GraphData, "bodies">} data
 * @param {Scene} scene
 * @returns {"whole" | "folded"}
 */
export function initialForm(data, scene) {
  if (scene.whole < 0) return "folded";
  return scene.folded < 0 || data.bodies[scene.whole].boxes.length <= FEW_BOXES ? "whole" : "folded";
}

/**
 * The number of boxes that are drawn, frames included.
 * @param {Pick<GraphData, "bodies">} data
 * @param {number} body
 * @param {ReadonlySet<number>} open
 * @returns {number}
 */
export function boxesDrawn(data, body, open) {
  let count = 0;
  for (const box of data.bodies[body].boxes) {
    count += 1;
    if (box.body >= 0 && open.has(box.body)) count += boxesDrawn(data, box.body, open);
  }
  return count;
}

/**
 * The bodies inside boxes that are closed now and could be opened.
 * @param {Pick<GraphData, "bodies">} data
 * @param {number} body
 * @param {ReadonlySet<number>} open
 * @returns {number[]}
 */
export function closedBodies(data, body, open) {
  return data.bodies[body].boxes.flatMap((box) => {
    if (box.body < 0) return [];
    return open.has(box.body) ? closedBodies(data, box.body, open) : [box.body];
  });
}

/** The box of a body that stands for a node, and the way to it. */
export class Holders {
  /** @param {Pick<GraphData, "bodies">} data */
  constructor(data) {
    this.data = data;
    /** @type {Map<number, Map<number, number>>} */
    this.known = new Map();
  }

  /**
   * The box of a body that stands for a node or holds it; -1 if none does.
   * @param {number} body
   * @param {number} local
   */
  box(body, local) {
    let boxes = this.known.get(body);
    if (boxes === undefined) {
      boxes = new Map();
      for (const [i, box] of this.data.bodies[body].boxes.entries())
        for (const member of box.members) boxes.set(member, i);
      this.known.set(body, boxes);
    }
    return boxes.get(local) ?? -1;
  }

  /**
   * The bodies to open, outermost first, so that a node has a box of its own (or the smallest that there is);
   * null if the node is not in the body.
   * @param {number} body
   * @param {number} local
   * @returns {number[] | null}
   */
  way(body, local) {
    const way = [];
    for (let at = body; at >= 0;) {
      const box = this.box(at, local);
      if (box < 0) return at === body ? null : way;
      at = this.data.bodies[at].boxes[box].body;
      if (at >= 0) way.push(at);
    }
    return way;
  }
}

/**
 * The node of a name in a body; -1 if there is none. One inside another graph goes by both names.
 * @param {{ boxes: BodyBox[] }} body
 * @param {string[]} names of the nodes
 * @param {string} name
 */
export function localNamed({ boxes }, names, name) {
  const members = boxes.flatMap((box) => box.members);
  return (
    members.find((local) => names[local] === name) ?? members.find((local) => names[local].endsWith(`/${name}`)) ?? -1
  );
}
