// Boxes whose insides compute the same: the layers of a transformer.

/** @import { BodyBox, GraphData } from "../types.d.ts" */

/** Graphs with more bodies are not looked through: each is read from its text only when it is drawn. */
const MOST_BODIES = 600;

/**
 * For each body of the numbered boxes of a body (`layers.1`) that computes the same as one before it, that box.
 * @param {Pick<GraphData, "bodies" | "layouts" | "outputs" | "tensors">} data
 * @param {number} body
 * @returns {{ like: Map<number, BodyBox>, firsts: Set<number> }} by body; `firsts` are bodies that others are like
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
  if (data.bodies.length > MOST_BODIES) return { like, firsts };
  for (const box of data.bodies[body]?.boxes ?? []) {
    const series = /^(.*\.|)\d+$/.exec(box.name)?.[1];
    if (box.body < 0 || series === undefined) continue;
    const shape = `${series} ${shapeOf(data, box.body, known)}`;
    const before = first.get(shape);
    if (before === undefined) first.set(shape, box);
    else {
      like.set(box.body, before);
      firsts.add(before.body);
    }
  }
  return { like, firsts };
}

/**
 * What a body computes, without names of nodes and modules. Inputs do not count: that of the whole graph stands in
 * the first layer alone.
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
  boxes.forEach(({ kind, lines, members, body: inner }, i) => {
    if (kind === "input" || kind === "constant") return;
    places.set(i, places.size);
    const said = lines.filter(([text, role]) => role === "target" && !text.startsWith("holds "));
    const made = members.length === 1 ? data.outputs[members[0]].map((tensor) => data.tensors[tensor].shape) : [];
    inside.push([kind, said.map(([text]) => text), made, inner < 0 ? "" : shapeOf(data, inner, known)]);
  });
  const edges = data.layouts[layout].edges
    .map(({ ends }) => ends.map((end) => places.get(end)))
    .filter((ends) => !ends.includes(undefined))
    .map(String)
    .sort();
  const shape = JSON.stringify([edges, inside]);
  known.set(body, shape);
  return shape;
}
