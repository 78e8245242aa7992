// Boxes whose insides compute the same: the layers of a transformer.

/** @import { BodyBox, GraphData } from "../types.d.ts" */

/** Graphs with more bodies are not looked through: each is read from its text only when it is drawn. */
const MOST_BODIES = 600;

/**
 * For each body of the numbered boxes of a body (`layers.1`) that computes the same as one before it, that box.
 * @param {Pick<GraphData, "bodies" | "layouts" | "outputs" | "tensors">} data
 * @param {number} body
 * @returns {{ like: Map<number, BodyBox>, firsts: Set<number> }} by body; `firsts` are bodies of the first of
 * those among which some are alike
 */
export function alike(data, body) {
  /** @type {Map<number, string>} */
  const known = new Map();
  /** @type {Map<string, BodyBox>} */
  const first = new Map();
  /** @type {Map<number, BodyBox>} */
  const like = new Map();
  /** @type {Set<number>} */
  const firsts = new Set();
  /** The body that stands first, by series. @type {Map<string, number>} */
  const top = new Map();
  if (data.bodies.length > MOST_BODIES) return { like, firsts };
  for (const box of data.bodies[body]?.boxes ?? []) {
    const series = /^(.*\.|)\d+$/.exec(box.name)?.[1];
    if (box.body < 0 || series === undefined) continue;
    if (!top.has(series)) top.set(series, box.body);
    const shape = `${series} ${shapeOf(data, box.body, known)}`;
    const before = first.get(shape);
    if (before === undefined) first.set(shape, box);
    else {
      like.set(box.body, before);
      firsts.add(top.get(series) ?? before.body);
    }
  }
  return { like, firsts };
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
  boxes.forEach(({ kind, lines, members, body: inner }, i) => {
    if (sources.has(i)) return;
    places.set(i, places.size);
    const targets = lines.filter(([text, role]) => role === "target" && !text.startsWith("holds "));
    const shapes = members.length === 1 ? data.outputs[members[0]].map((tensor) => data.tensors[tensor].shape) : [];
    inside.push([kind, targets.map(([text]) => text), shapes, inner < 0 ? "" : shapeOf(data, inner, known)]);
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
