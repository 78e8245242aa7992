import assert from "node:assert/strict";
import { test } from "node:test";

import { alike } from "../../compile_lens/views/viewer/web/graph/alike.js";

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
