import assert from "node:assert/strict";
import { test } from "node:test";

import { NodeSearch, searchTerms, shortShape } from "../../compile_lens/views/live/web/graph/search.js";

const strings = [
  "",
  "placeholder",
  "call_function",
  "aten.mm.default",
  "layers.0.attn",
  "Attention",
  "aten.Sin.default",
];
const tensors = [
  { dtype: "float32", shape: "[8, 16]", stride: "[16, 1]", device: "cpu", bytes: 512, grad: false },
  { dtype: "torch.bfloat16", shape: "[16]", stride: "[1]", device: "cpu", bytes: 32, grad: false },
  { dtype: "int64", shape: "[s0, 8]", stride: "", device: "cpu", bytes: null, grad: false },
];
const data = {
  strings,
  tensors,
  op: [1, 2, 2, 2],
  target: [0, 3, 6, 3],
  module: [0, 4, 4, 0],
  moduleType: [0, 5, 5, 0],
  outputs: [[0], [0, 1], [1], [2]],
};
const search = new NodeSearch(data, ["primals_1", "mm", "sin", "MM_1"]);

test("every field is searched, in small and large letters alike", () => {
  assert.deepEqual(search.find("PRIMALS"), [0]);
  assert.deepEqual(search.find("aten.sin"), [2]);
  assert.deepEqual(search.find("attn"), [1, 2]);
  assert.deepEqual(search.find("attention"), [1, 2]);
  assert.deepEqual(search.find("bfloat"), [1, 2]);
  assert.deepEqual(search.find("bf16"), [1, 2]);
  assert.deepEqual(search.find("8x16"), [0, 1]);
  assert.deepEqual(search.find("[8,"), [0, 1]);
  assert.deepEqual(search.find('"[8, 16]"'), [0, 1]);
  assert.deepEqual(search.find("mm"), [1, 3]);
  assert.deepEqual(search.find("nothing like it"), []);
});

test("all words have to be found", () => {
  assert.deepEqual(search.find("mm attn"), [1]);
  assert.deepEqual(search.find("  mm   8x16 "), [1]);
  assert.deepEqual(search.find("sin mm"), []);
});

test("an empty query finds nothing", () => {
  assert.deepEqual(search.find(""), []);
  assert.deepEqual(search.find("   "), []);
  assert.deepEqual(search.find("op:"), []);
});

test("a prefix looks in one place only", () => {
  assert.deepEqual(search.find("name:mm"), [1, 3]);
  assert.deepEqual(search.find("op:sin"), [2]);
  assert.deepEqual(search.find("target:placeholder"), [0]);
  assert.deepEqual(search.find("op:attn"), []);
  assert.deepEqual(search.find("module:attn"), [1, 2]);
  assert.deepEqual(search.find("shape:8x16"), [0, 1]);
  assert.deepEqual(search.find("shape:[8,16]"), [0, 1]);
  assert.deepEqual(search.find("shape:s0"), [3]);
  assert.deepEqual(search.find("dtype:float32 op:mm"), [1]);
  assert.deepEqual(search.find("dtype:16"), [1, 2]);
});

test("what is no prefix is a word", () => {
  assert.deepEqual(searchTerms("constructor:x a::b module:a.b"), [
    { field: "", text: "constructor:x" },
    { field: "", text: "a::b" },
    { field: "module", text: "a.b" },
  ]);
  assert.deepEqual(searchTerms('shape:"8, 16" "two words'), [
    { field: "shape", text: "8, 16" },
    { field: "", text: "two words" },
  ]);
});

test("shapes lose brackets and blanks", () => {
  assert.equal(shortShape("[8, 16]"), "8x16");
  assert.equal(shortShape("(8,)"), "8");
  assert.equal(shortShape("[]"), "");
  assert.equal(shortShape("8×16"), "8x16");
});

test("names are plain text, whatever is in them", () => {
  const odd = new NodeSearch(
    { ...data, op: [1, 1], target: [0, 0], module: [0, 0], moduleType: [0, 0], outputs: [[], []] },
    ["a.*b", "</script>"],
  );
  assert.deepEqual(odd.find(".*"), [0]);
  assert.deepEqual(odd.find("</SCRIPT>"), [1]);
  assert.deepEqual(odd.find("(["), []);
});
