import assert from "node:assert/strict";
import { test } from "node:test";

import {
  bytesInFull,
  bytesInShort,
  factsInLine,
  factsOf,
  sharedModule,
} from "../../compile_lens/views/live/web/data/facts.js";
import { capture } from "./captures.mjs";

const MADE = capture([
  [-1, "python", [["/home/me/m.py:3", "python"]]],
  [
    0,
    "forward",
    [
      ["sin", "pointwise"],
      ["split", "view"],
      ["x", "input", [], "an argument"],
    ],
  ],
  [0, "forward.groups", [["g", "reduction", ["forward sin"]]]],
  [
    0,
    "forward.code",
    [
      ["mm", "kernel"],
      ["cpp", "kernel"],
      ["cpp:2", "line", [], "a loop's head"],
    ],
  ],
]);
const { model } = MADE;
const TENSOR = { dtype: "float32", shape: "[1000]", stride: "[1]", device: "cpu", bytes: 4000, grad: true };
const GRAPH = {
  notFused: [],
  strings: [
    "",
    "call_function",
    "aten.sin.default",
    "layers.0",
    "Linear",
    "/home/me/m.py:9 in f: a(x)",
    "/home/me/m.py:3 in a: sin(x)",
    "placeholder",
    "layers.0.norm",
  ],
  op: [1, 1, 7],
  target: [2, 2, 0],
  module: [3, 8, 0],
  moduleType: [4, 0, 0],
  outputs: [[0], [0, 1], []],
  tensors: [TENSOR, { ...TENSOR, bytes: null, grad: false, stride: "" }],
  frames: [[5, 6], [], []],
  traffic: [[0, 4000, -1]],
  detail: [[0, "def body"]],
  members: [],
  saved: [0],
};
const GROUPS = {
  ...GRAPH,
  op: [0],
  target: [0],
  module: [0],
  moduleType: [0],
  outputs: [[]],
  frames: [[]],
  traffic: [[0, 20, 4]],
  detail: [],
  members: [[0, [1, 2]]],
  saved: [],
};
const kernel = {
  name: "mm",
  language: "extern",
  languageTitle: "library call",
  kind: "extern",
  launches: 1,
  launched: "1 launch",
  first: 0,
  last: 0,
  source: null,
  traffic: "~12 B",
  operators: ["mm"],
  lines: ["m.py:3"],
  unknown: "",
  facts: [],
  items: [],
  noOrigin: [],
};
const CODE = {
  device: "cpu",
  stamp: "built, not run",
  kernels: [
    { ...kernel, item: 5, launchLines: [30] },
    { ...kernel, item: 5, launchLines: [31], operators: ["mm_1"] },
    {
      ...kernel,
      item: 6,
      name: "cpp",
      language: "cpp",
      languageTitle: "C++",
      kind: "pointwise",
      launchLines: [],
      first: 10,
      last: 12,
      source: { text: "{\n  a = 1;\n}", inks: [] },
      items: [[2, 7]],
      unknown: "no origin was kept",
      facts: ["avx512", "9 instructions"],
    },
  ],
};
model.core.sources.push({
  file: "/home/me/m.py",
  first: 2,
  name: "f",
  code: { text: "def f():\n  y = 1\n", inks: [] },
  items: [],
});
const parts = { g1: GRAPH, g2: GROUPS, g3: CODE };
model.payload.get = (name) => Promise.resolve(parts[name]);

const rowsOf = async (...items) => Object.fromEntries((await factsOf(model, items, "layers.0")).rows);

test("a node: what it calls, its tensor in full, module, source innermost first, traffic as modelled", async () => {
  const facts = await factsOf(model, [1], "sin");
  assert.deepEqual(Object.fromEntries(facts.rows), {
    operation: "aten.sin.default",
    dtype: "float32",
    shape: "[1000]",
    stride: "[1]",
    device: "cpu",
    bytes: "4,000 B",
    gradient: "required",
    module: "layers.0 (Linear)",
    source: "/home/me/m.py:3 in a: sin(x)\n/home/me/m.py:9 in f: a(x)",
    saved: "for backward",
    traffic: "reads 4,000 B, writes an unknown number of bytes (modelled)",
    "in Python": '("0/0", "forward", "sin")',
  });
  assert.deepEqual(facts.texts, [{ label: "in full", text: "def body" }]);
  assert.equal(
    factsInLine(facts),
    "sin · forward · pointwise · float32 [1000] · layers.0 (Linear) · reads 4,000 B, writes an unknown number of bytes (modelled)",
  );
});

test("a node of several tensors lists each; one without a tensor says nothing of any", async () => {
  const rows = await rowsOf(2);
  assert.equal(rows["output 0"], "float32 [1000], stride [1], cpu, 4,000 B, requires grad");
  assert.equal(rows["output 1"], "float32 [1000], cpu, bytes not known");
  assert.ok(!("dtype" in rows));
  assert.deepEqual(await rowsOf(3), {
    operation: "placeholder",
    "no origin": "an argument",
    "in Python": '("0/0", "forward", "x")',
  });
});

test("a group names its members", async () => {
  const rows = await rowsOf(4);
  assert.equal(rows.members, "2 loops: sin, split");
  assert.equal(rows.traffic, "reads 20 B, writes 4 B (modelled)");
});

test("calls that share a name are one item: launches add up, and each names what it came from", async () => {
  const rows = await rowsOf(5);
  assert.equal(rows.launches, "2 launches (line 30, 31 of the module)");
  assert.equal(rows.operators, "mm, mm_1");
  assert.equal(rows.Python, "m.py:3");
  assert.ok(!("kind" in rows), "a library call is of no other kind");
  assert.equal((await rowsOf(6))["no origin"], "no origin was kept");
});

test("a line of a kernel: its text, and where it stands in the module", async () => {
  assert.deepEqual(await rowsOf(7), {
    kernel: "cpp",
    line: "11 of the module, 2 in its address",
    text: "a = 1;",
    "no origin": "a loop's head",
    "in Python": '("0/0", "forward.code", "cpp:2")',
  });
});

test("a Python line: file, text and function", async () => {
  const facts = await factsOf(model, [0], "m.py:3");
  assert.equal(facts.title, "m.py:3");
  assert.deepEqual(Object.fromEntries(facts.rows), {
    line: "3 of /home/me/m.py",
    text: "text of /home/me/m.py:3",
    function: "f",
    "in Python": '"m.py:3"',
  });
});

test("several items: how many, of which kinds, and the module that they share", async () => {
  assert.deepEqual(await rowsOf(1, 2), {
    holds: "2 items",
    kinds: "1 pointwise, 1 view",
    module: "layers.0 (Linear)",
    saved: "1 node for backward",
    items: "sin, split",
  });
});

test("modules are shared by whole steps", () => {
  assert.equal(sharedModule(["layers.1.a", "layers.10.a"]), "layers");
  assert.equal(sharedModule(["a.b", "a.b.c"]), "a.b");
  assert.equal(sharedModule(["a", ""]), "");
  assert.equal(sharedModule([]), "");
});

test("bytes are exact below 10,000, and in a unit from there on", () => {
  assert.equal(bytesInFull(9999), "9,999 B");
  assert.equal(bytesInFull(46_080_000), "46.1 MB (46,080,000 B)");
  assert.deepEqual([0, 10_000, 95_624, 999_499, 999_500, 5e9, 2e15].map(bytesInShort), [
    "0 B",
    "10 kB",
    "95.6 kB",
    "999 kB",
    "1 MB",
    "5 GB",
    "2,000 TB",
  ]);
});
