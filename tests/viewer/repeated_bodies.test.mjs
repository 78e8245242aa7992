import assert from "node:assert/strict";
import { test } from "node:test";

import { alike } from "../../compile_lens/views/live/web/drawing/repeated_bodies.js";

/** Layers of plain boxes `[target, boxes that feed it, whether it is used outside of the layer]`. */
function layers(...insides) {
  const tensors = [{ shape: "[4]" }];
  const outputs = [];
  const bodies = [{ layout: 0, boxes: [] }];
  const layouts = [{ edges: [], stubs: [] }];
  insides.forEach((inside, number) => {
    const boxes = inside.map(([target]) => {
      outputs.push([0]);
      const kind = target === "seed" ? "random" : "pointwise";
      return { name: target, kind, lines: [[target, "target"]], members: [outputs.length - 1], body: -1 };
    });
    const edges = inside.flatMap(([, from], i) => from.map((source) => ({ ends: [source, i] })));
    const stubs = inside.flatMap(([, , leaves], box) => (leaves ? [{ box, outgoing: true }] : []));
    layouts.push({ edges, stubs });
    bodies.push({ layout: number + 1, boxes });
    const members = boxes.flatMap((box) => box.members);
    bodies[0].boxes.push({ name: `layers.${number}`, kind: "collapsed", lines: [], members, body: number + 1 });
  });
  return { bodies, layouts, outputs, tensors };
}

const said = ({ like }) => [...like].map(([body, { name }]) => `${body}: ${name}`);
const PLAIN = [
  ["mul", [], false],
  ["add", [0], true],
];

test("layers that compute the same are like the first of them, which is open", () => {
  const found = alike(layers(PLAIN, PLAIN, PLAIN), 0);
  assert.deepEqual(said(found), ["2: layers.0", "3: layers.0"]);
  assert.deepEqual([...found.firsts], [1]);
});

test("a filled tensor that all layers use stands in the first one alone, and does not count", () => {
  const filled = (target) => [["mul", [2], false], PLAIN[1], [target, [], true]];
  assert.deepEqual(said(alike(layers(filled("full"), PLAIN, PLAIN), 0)), ["2: layers.0", "3: layers.0"]);
  assert.deepEqual(said(alike(layers(filled("seed"), PLAIN, PLAIN), 0)), ["3: layers.1"], "but a random one does");
});

test("the first layer is open though only others are like each other", () => {
  const other = [["sin", [], false], PLAIN[1]];
  const found = alike(layers(other, PLAIN, PLAIN), 0);
  assert.deepEqual(said(found), ["3: layers.1"]);
  assert.deepEqual([...found.firsts], [1]);
  assert.deepEqual([...alike(layers(other, PLAIN), 0).firsts], [], "nothing is alike");
});

/** Two layers of a box and a sum; the first one's box contains an input, which the sum takes too. */
function residual(taken) {
  const box = (name, kind, members, body, target = name) => ({
    name,
    kind,
    lines: [[target, "target"]],
    members,
    body,
  });
  const input = box("x", "input", [0], -1);
  const inner = [
    { boxes: [input, box("sin", "pointwise", [1], -1)], edges: [[0, 1]], to: [[taken, ["add"]]] },
    { boxes: [box("add", "pointwise", [2], -1)], edges: [], to: [] },
    { boxes: [box("sin_1", "pointwise", [3], -1, "sin")], edges: [], to: [] },
    { boxes: [box("add_1", "pointwise", [4], -1, "add")], edges: [], to: [] },
  ];
  const attention = (body, members) => box("attention", "collapsed", members, body);
  const layer = [
    { boxes: [attention(1, [0, 1]), box("add", "pointwise", [2], -1)], edges: [[0, 1]], to: [] },
    { boxes: [attention(3, [3, 3]), box("add_1", "pointwise", [4], -1, "add")], edges: [], to: [] },
  ];
  const top = [box("layers.0", "collapsed", [0, 1, 2], 5), box("layers.1", "collapsed", [3, 4], 6)];
  const all = [{ boxes: top, edges: [], to: [] }, ...inner, ...layer];
  return {
    tensors: [{ shape: "[4]" }],
    outputs: [[0], [0], [0], [0], [0]],
    bodies: all.map(({ boxes, to }, i) => ({ layout: i, boxes, stubs: to.map(([, others]) => ({ others })) })),
    layouts: all.map(({ edges, to }) => ({
      edges: edges.map((ends) => ({ ends })),
      stubs: to.map(([from]) => ({ box: from, outgoing: true })),
    })),
  };
}

test("what an input inside of a box feeds does not count, as the input does not", () => {
  assert.deepEqual(said(alike(residual(0), 0)), ["6: layers.0"]);
  assert.deepEqual(said(alike(residual(1), 0)), [], "what an operation in it feeds does");
});

test("a layer that computes nearly the same says in how many nodes it differs, and is open if it is the first", () => {
  const long = (first) => [[first, [], false], ...Array.from({ length: 10 }, (_, i) => ["mul", [i], i === 9])];
  const found = alike(layers(long("sin"), long("mul"), long("mul")), 0);
  assert.deepEqual(said(found), ["3: layers.1"]);
  assert.deepEqual(
    [...found.near].map(([body, { box, nodes }]) => [body, box.name, nodes]),
    [[1, "layers.1", 1]],
  );
  assert.deepEqual([...found.firsts], [1]);
  const last = alike(layers(long("mul"), long("mul"), long("sin")), 0);
  assert.deepEqual([...last.near.keys()], [3]);
  assert.deepEqual([...alike(layers(PLAIN, [["sin", [], false], PLAIN[1]]), 0).near], [], "half of it differs");
  const two = alike(layers(long("sin"), long("mul")), 0);
  assert.deepEqual([...two.near.keys()], [1, 2], "each is near the other");
});
