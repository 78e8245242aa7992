// Boxes whose insides compute the same: the layers of a transformer.

/** @import { BodyBox, GraphData } from "../types.d.ts" */

/** Graphs with more bodies are not looked through: each is read from its text only when it is drawn. */
const MOST_BODIES = 600;

/** Boxes that differ in at most this share of their nodes are similar. */
const SIMILAR = 0.1;

/**
 * @typedef {object} Alike
 * @property {Map<number, BodyBox>} like by body the box before it that computes the same
 * @property {Map<number, { box: BodyBox, nodes: number }>} near by body of one that computes the same as none, a similar
 *   box, and in how many nodes they differ
 * @property {Set<number>} firsts bodies of the first of those among which some are alike or similar
 */

/**
 * Which of the numbered boxes of a body (`layers.1`) compute the same, or nearly so.
 * @param {Pick<GraphData, "bodies" | "layouts" | "outputs" | "tensors">} data
 * @param {number} body
 * @returns {Alike}
 */
export function alike(data, body) {
  /** @type {Map<number, string>} */
  const known = new Map();
  /** @type {Map<number, BodyBox>} */
  const like = new Map();
  /** @type {Set<number>} */
  const firsts = new Set();
  /** @type {Alike["near"]} */
  const near = new Map();
  /** The boxes of each series, by what they compute. @type {Map<string, Map<string, BodyBox[]>>} */
  const every = new Map();
  if (data.bodies.length > MOST_BODIES) return { like, near, firsts };
  for (const box of data.bodies[body]?.boxes ?? []) {
    const series = /^(.*\.|)\d+$/.exec(box.name)?.[1];
    if (box.body < 0 || series === undefined) continue;
    const shapes = every.get(series) ?? new Map();
    const shape = shapeOf(data, box.body, known);
    const equal = [...(shapes.get(shape) ?? []), box];
    every.set(series, shapes.set(shape, equal));
    if (equal.length > 1) like.set(box.body, equal[0]);
  }
  for (const shapes of every.values()) {
    const classes = [...shapes.values()];
    const [usual, next] = [...classes].sort((one, other) => other.length - one.length);
    for (const equal of classes) {
      const other = equal === usual ? next : usual;
      const nodes = equal.length === 1 && other ? differing(data, equal[0].body, other[0].body) : 0;
      if (nodes > 0) near.set(equal[0].body, { box: other[0], nodes });
    }
    if (classes.some((equal) => equal.length > 1 || near.has(equal[0].body))) firsts.add(classes[0][0].body);
  }
  return { like, near, firsts };
}

/**
 * The number of nodes in which two bodies differ; 0 where they differ in more than those of similar ones do, or in edges
 * only.
 * @param {Pick<GraphData, "bodies" | "layouts" | "outputs" | "tensors">} data
 * @param {number} one
 * @param {number} other
 */
function differing(data, one, other) {
  const [own, others] = [one, other].map((body) => nodesIn(data, body));
  const without = (/** @type {string[]} */ from, /** @type {string[]} */ those) => {
    const left = [...those];
    return from.filter((node) => left.indexOf(node) < 0 || (left.splice(left.indexOf(node), 1), false)).length;
  };
  const nodes = Math.max(without(own, others), without(others, own));
  return nodes <= SIMILAR * Math.min(own.length, others.length) ? nodes : 0;
}

/**
 * What each node in a body computes, those in its boxes too.
 * @param {Pick<GraphData, "bodies" | "layouts" | "outputs" | "tensors">} data
 * @param {number} body
 * @returns {string[]}
 */
function nodesIn(data, body) {
  const sources = sourcesIn(data, body);
  return data.bodies[body].boxes.flatMap((box, i) => {
    if (sources.has(i)) return [];
    return box.body < 0 ? [JSON.stringify(contentOf(data, box))] : nodesIn(data, box.body);
  });
}

/**
 * The kind of a box, its operator or class, and the sizes of what it makes.
 * @param {Pick<GraphData, "bodies" | "layouts" | "outputs" | "tensors">} data
 * @param {BodyBox} box
 */
function contentOf(data, { kind, lines, members }) {
  const targets = lines.filter(([text, role]) => role === "target" && !text.startsWith("holds "));
  const shapes = members.length === 1 ? data.outputs[members[0]].map((tensor) => data.tensors[tensor].shape) : [];
  return [kind, targets.map(([text]) => text), shapes];
}

/** @typedef {Pick<GraphData, "bodies" | "layouts">} Bodies */

/**
 * Boxes of a body that stand in the first of equal layers alone: inputs, and filled tensors that others use too.
 * @param {Bodies} data
 * @param {number} body
 */
function sourcesIn(data, body) {
  const { boxes, layout } = data.bodies[body];
  const { edges, stubs } = data.layouts[layout];
  const fed = new Set([...edges.map(({ ends }) => ends[1]), ...stubs.map((stub) => (stub.outgoing ? -1 : stub.box))]);
  const leaves = new Set(stubs.filter(({ outgoing }) => outgoing).map(({ box }) => box));
  const filled = (/** @type {BodyBox} */ { kind, body: inner }, /** @type {number} */ i) =>
    kind !== "random" && inner < 0 && !fed.has(i) && leaves.has(i);
  const filledBoxes = boxes.flatMap((box, i) =>
    ["input", "constant"].includes(box.kind) || filled(box, i) ? [i] : [],
  );
  return new Set(filledBoxes);
}

/**
 * True if nothing but such boxes inside of one box feeds another one.
 * @param {Bodies} data
 * @param {BodyBox} from
 * @param {BodyBox} to
 */
function ofSources(data, from, to) {
  if (from.body < 0) return false;
  const names = new Set(namesIn(data, to));
  const feed = feeders(data, from.body, names);
  return feed.length > 0 && feed.every(Boolean);
}

/**
 * For each box of a body that feeds one of the named nodes outside of it, whether it is a source.
 * @param {Bodies} data
 * @param {number} body
 * @param {Set<string>} names
 * @returns {boolean[]}
 */
function feeders(data, body, names) {
  const { boxes, stubs, layout } = data.bodies[body];
  const sources = sourcesIn(data, body);
  return data.layouts[layout].stubs.flatMap(({ box, outgoing }, i) => {
    if (!outgoing || !stubs[i].others.some((name) => names.has(name))) return [];
    return boxes[box].body < 0 ? [sources.has(box)] : feeders(data, boxes[box].body, names);
  });
}

/** Names of all nodes in a box. @param {Bodies} data @param {BodyBox} box @returns {string[]} */
function namesIn(data, box) {
  return box.body < 0 ? [box.name] : data.bodies[box.body].boxes.flatMap((inner) => namesIn(data, inner));
}

/**
 * A key for what a body computes, without names of nodes and modules. Inputs do not count: that of the whole graph stands in
 * the first layer alone, and so does a filled tensor that all of them use.
 * @param {Pick<GraphData, "bodies" | "layouts" | "outputs" | "tensors">} data
 * @param {number} body
 * @param {Map<number, string>} known
 * @returns {string}
 */
function shapeOf(data, body, known) {
  const before = known.get(body);
  if (before !== undefined) return before;
  const { boxes, layout } = data.bodies[body];
  const sources = sourcesIn(data, body);
  /** @type {Map<number, number>} */
  const places = new Map();
  /** @type {unknown[]} */
  const inside = [];
  boxes.forEach((box, i) => {
    if (sources.has(i)) return;
    places.set(i, places.size);
    inside.push([...contentOf(data, box), box.body < 0 ? "" : shapeOf(data, box.body, known)]);
  });
  const edges = data.layouts[layout].edges
    .filter(({ ends }) => !ofSources(data, boxes[ends[0]], boxes[ends[1]]))
    .map(({ ends }) => ends.map((end) => places.get(end)))
    .filter((ends) => !ends.includes(undefined))
    .map(String)
    .sort();
  const shape = JSON.stringify([edges, inside]);
  known.set(body, shape);
  return shape;
}
