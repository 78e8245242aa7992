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

/**
 * What a body computes, without names of nodes and modules. Inputs do not count: that of the whole graph stands in
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
  /** @type {Map<number, number>} */
  const places = new Map();
  /** @type {unknown[]} */
  const inside = [];
  const { edges: drawn, stubs } = data.layouts[layout];
  const fed = new Set([...drawn.map(({ ends }) => ends[1]), ...stubs.map((stub) => (stub.outgoing ? -1 : stub.box))]);
  const leaves = (/** @type {number} */ i) => stubs.some(({ box, outgoing }) => outgoing && box === i);
  boxes.forEach(({ kind, lines, members, body: inner }, i) => {
    if (kind === "input" || kind === "constant") return;
    if (kind !== "random" && inner < 0 && !fed.has(i) && leaves(i)) return;
    places.set(i, places.size);
    const said = lines.filter(([text, role]) => role === "target" && !text.startsWith("holds "));
    const made = members.length === 1 ? data.outputs[members[0]].map((tensor) => data.tensors[tensor].shape) : [];
    inside.push([kind, said.map(([text]) => text), made, inner < 0 ? "" : shapeOf(data, inner, known)]);
  });
  const edges = drawn
    .map(({ ends }) => ends.map((end) => places.get(end)))
    .filter((ends) => !ends.includes(undefined))
    .map(String)
    .sort();
  const shape = JSON.stringify([edges, inside]);
  known.set(body, shape);
  return shape;
}
