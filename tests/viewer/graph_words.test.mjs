import assert from "node:assert/strict";
import { test } from "node:test";

import { GraphWords, tensorWord } from "../../compile_lens/views/live/web/drawing/labels.js";
import { curve, kindClass } from "../../compile_lens/views/live/web/drawing/shapes.js";

const data = {
  strings: ["", "call_function", "aten.sin.default", "layers.0", "Layer", "f.py:3 in f: y = x.sin()"],
  op: [1, 1, 1],
  target: [2, 2, 0],
  module: [3, 0, 0],
  moduleType: [4, 0, 0],
  outputs: [[0], [0, 0, 0, 0, 0, 0], []],
  tensors: [{ dtype: "float32", shape: "[1000]", stride: "[1]", device: "cpu", bytes: 4000, grad: false }],
  frames: [[5], [], []],
  traffic: [
    [0, 4000, 4000],
    [1, -1, -1],
  ],
  detail: [[2, "one\ntwo"]],
  members: [],
  saved: [0],
};
const words = new GraphWords(data, ["sin", "sin_1", "x"], "saved for backward");
const box = (name, members, body = -1) => ({ name, kind: "pointwise", lines: [], members, body });

test("a label names the node, what it does, what it makes, and whether it is kept", () => {
  assert.equal(words.label(box("sin", [0])), "sin, aten.sin.default, float32[1000], saved for backward");
  assert.equal(words.label(box("x", [2])), "x, call_function");
});

test("a box of several nodes says how many, and how many are kept", () => {
  assert.equal(words.label(box("layers.0", [0, 1], 4)), "layers.0, holds 2 nodes, 1 saved for backward");
  assert.equal(
    words.tip(box("layers.0", [0, 1], 4)),
    "layers.0\nholds 2 nodes: sin, sin_1\n1 of them saved for backward\ndouble-click to open",
  );
  assert.match(words.tip(box("layers.0", [0, 1])), /its inside is not drawn$/);
});

test("a tip says everything that does not fit into the box", () => {
  assert.deepEqual(words.tip(box("sin", [0])).split("\n"), [
    "sin",
    "call_function aten.sin.default",
    "float32[1000] stride [1] cpu",
    "module layers.0 (Layer)",
    "f.py:3 in f: y = x.sin()",
    "reads ~4,000 B, writes ~4,000 B (modelled)",
    "saved for backward",
  ]);
  assert.match(words.tip(box("sin_1", [1])), /and 2 more tensors$/);
  assert.match(words.tip(box("x", [2])), /one\ntwo$/);
});

test("endless names are cut", () => {
  const long = box("n".repeat(10_000), [0]);
  assert.ok(words.tip(long).length < 1000);
  assert.ok(words.label(long).length < 1000);
  assert.ok(words.stub(Array(50).fill("n".repeat(10_000)), true).length < 1200);
  assert.match(words.stub(["a", "b"], false), /^from a, b$/);
  assert.match(words.stub(Array(15).fill("a"), true), /^to a, .* and 3 more$/);
});

test("shapes keep their brackets or get some", () => {
  assert.equal(tensorWord({ dtype: "int64", shape: "8, 16" }), "int64[8, 16]");
  assert.equal(tensorWord({ dtype: "int64", shape: "[]" }), "int64[]");
});

test("only known kinds reach a class", () => {
  assert.equal(kindClass("matmul"), "kind-matmul");
  assert.equal(kindClass('x" onload="y'), "kind-other");
});

test("a curve ends in two wings that meet at its last point", () => {
  assert.equal(curve([0, 0, 0, 5, 10, 5, 10, 20]), "M0 0C0 5 10 5 10 20M7.5 15.4L10 20 12.5 15.4");
  // Handles on the end itself define no direction.
  assert.equal(curve([10, 0, 10, 5, 10, 20, 10, 20]), "M10 0C10 5 10 20 10 20M7.5 15.4L10 20 12.5 15.4");
});
