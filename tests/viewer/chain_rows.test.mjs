import assert from "node:assert/strict";
import { test } from "node:test";

import {
  chainAsText,
  chainInLine,
  chainRows,
  sharedItems,
} from "../../compile_lens/views/live/web/chain/chain_rows.js";
import { Reach } from "../../compile_lens/views/live/web/data/reasons.js";
import { capture, diced } from "./captures.mjs";

const MADE = capture(
  [
    [-1, "python", [["/home/me/m.py:3", "python"]]],
    [
      0,
      "dynamo",
      [
        ["sin", "pointwise", ["python /home/me/m.py:3"]],
        ["cos", "pointwise", ["python /home/me/m.py:3"]],
      ],
    ],
    [
      0,
      "joint",
      [
        ["sin", "pointwise", ["dynamo sin"]],
        ["cos", "pointwise", ["dynamo cos"]],
      ],
    ],
    [
      0,
      "forward",
      [
        ["sin", "pointwise", ["joint sin"]],
        ["cos", "pointwise", ["joint cos"]],
      ],
    ],
    [0, "forward.loops", [["op0", "pointwise", ["forward sin", "forward cos"]]]],
    [
      0,
      "forward.code",
      [
        ["cpp_0", "kernel", ["forward.loops op0"]],
        ["mm", "kernel", []],
        ["cpp_0:4", "line", ["forward sin"]],
        ["cpp_0:5", "line", ["forward cos"]],
      ],
    ],
    [0, "backward", [["mul", "pointwise", ["joint sin"]]]],
    [0, "backward.loops", [["op0", "pointwise", ["backward mul"]]]],
    [0, "backward.code", [["cpp_b", "kernel", ["backward.loops op0"]]]],
  ],
  [[0, "forward.post_grad", "cache hit", "forward"]],
);

const reachOf = (made, ...addresses) => new Reach(made.model, made.chain, made.items(...addresses));
const rowsOf = (...addresses) => chainRows(reachOf(MADE, ...addresses));
const said = (rows) =>
  rows.map((row) => [row.title, row.holds, row.items.map((item) => MADE.model.name(item)).join(" ") || row.reason]);

test("a row for each stage, in the order of the record, kernels and their lines apart", () => {
  assert.deepEqual(said(rowsOf("dynamo sin")), [
    ["Python", "python", "/home/me/m.py:3"],
    ["dynamo", "nodes", "sin"],
    ["joint", "nodes", "sin"],
    ["forward", "nodes", "sin"],
    ["forward post-grad", "none", "the stage was not seen: cache hit"],
    ["forward loops", "nodes", "op0"],
    ["forward code", "kernels", "cpp_0"],
    ["forward code, lines", "lines", "cpp_0:4"],
    ["backward", "nodes", "mul"],
    ["backward loops", "nodes", "op0"],
    ["backward code", "kernels", "cpp_b"],
    ["backward code, lines", "none", "the record links no line of it to this chain"],
  ]);
});

test("a line of a kernel alone lists no kernel that the record does not link to it", () => {
  const rows = rowsOf("forward.code cpp_0:5").filter((row) => row.title.startsWith("forward code"));
  assert.deepEqual(said(rows), [["forward code, lines", "lines", "cpp_0:5"]]);
});

test("neighbours without a match for one reason share a row, never across phases", () => {
  const rows = rowsOf("forward cos");
  const none = rows.filter((row) => row.holds === "none");
  assert.deepEqual(
    none.map((row) => row.title),
    ["forward post-grad", "backward … backward code"],
  );
  assert.ok(none.every((row) => row.reason));
});

test("in one line: from the Python line to the kernel, equal neighbours once, a second phase after it", () => {
  const { model } = MADE;
  assert.equal(chainInLine(model, rowsOf("dynamo cos")), "m.py:3 → cos → op0 → cpp_0");
  assert.equal(chainInLine(model, rowsOf("dynamo sin")), "m.py:3 → sin → op0 → cpp_0;  … → mul → op0 → cpp_b");
  assert.equal(chainInLine(model, rowsOf("forward.loops op0")), "m.py:3 → sin +1 → op0 → cpp_0");
  const long = capture([
    [-1, "python", [["m.py:1", "python"]]],
    ...Array.from({ length: 12 }, (_, i) => [
      0,
      `s${i}`,
      [[`n${i}`, "other", [i ? `s${i - 1} n${i - 1}` : "python m.py:1"]]],
    ]),
  ]);
  assert.equal(
    chainInLine(long.model, chainRows(new Reach(long.model, long.chain, [0]))),
    "m.py:1 → n0 → n1 → n2 → … → n10 → n11",
  );
});

test("as text: every row with its title, lines with their text, reasons said", () => {
  const { model } = MADE;
  const text = chainAsText(model, "cos", rowsOf("dynamo cos"), (item) =>
    item === 0 ? "y = sin(x)" : model.kind(item) === "line" ? "auto t = cos(a);" : "",
  );
  const lines = text.split("\n");
  assert.equal(lines[0], "Chain of cos");
  assert.match(text, /^Python +m\.py:3  y = sin\(x\)$/m);
  assert.match(text, /^forward code, lines +cpp_0:5  auto t = cos\(a\);$/m);
  assert.match(text, /^forward post-grad +\(none: the stage was not seen: cache hit\)$/m);
  assert.ok(text.endsWith("\n"));
  const starts = lines.slice(1, -1).map((line) => line.search(/(?<=\S {2,})\S/));
  assert.equal(new Set(starts).size, 1, "names stand below each other");
});

test("what chains share: items in all of them, by stage", () => {
  const names = (shared) =>
    shared.map(([stage, items]) => [MADE.model.index.stages[stage].key, ...items.map((item) => MADE.model.name(item))]);
  const sin = reachOf(MADE, "joint sin");
  const cos = reachOf(MADE, "joint cos");
  assert.deepEqual(names(sharedItems(MADE.model, [sin, cos])), [
    ["python", "/home/me/m.py:3"],
    ["forward.loops", "op0"],
    ["forward.code", "cpp_0"],
  ]);
  assert.deepEqual(sharedItems(MADE.model, [sin]), []);
  assert.deepEqual(names(sharedItems(MADE.model, [sin, cos, reachOf(MADE, "backward mul")])), [
    ["python", "/home/me/m.py:3"],
  ]);
});

test("several compilations: those that the chain reaches, named by their number", () => {
  const two = capture([
    [
      -1,
      "python",
      [
        ["m.py:1", "python"],
        ["m.py:2", "python"],
        ["m.py:3", "python"],
      ],
    ],
    [
      0,
      "dynamo",
      [
        ["a", "other", ["python m.py:1"]],
        ["c", "other", ["python m.py:2"]],
      ],
    ],
    [1, "dynamo", [["b", "other", ["python m.py:2"]]]],
  ]);
  const titles = (item) =>
    chainRows(new Reach(two.model, two.chain, [item])).map((row) => `${row.title}: ${row.items.length}`);
  assert.deepEqual(titles(two.item("python m.py:1")), ["Python: 1", "0/0 dynamo: 1"]);
  assert.deepEqual(titles(two.item("python m.py:2")), ["Python: 1", "0/0 dynamo: 1", "0/1 dynamo: 1"]);
  assert.deepEqual(titles(two.item("1 dynamo b")), ["Python: 1", "0/1 dynamo: 1"]);
  assert.deepEqual(
    titles(two.item("python m.py:3")),
    ["Python: 1", "0/0 dynamo … 0/1 dynamo: 0"],
    "a line without anything says so for each",
  );
});

test("on any record: rows hold the whole chain once, and every empty row has its reason", () => {
  for (let seed = 1; seed <= 200; seed++) {
    const { model, chain, index, roll } = diced(seed);
    if (index.names.length === 0) continue;
    const items = [roll(index.names.length)];
    const rows = chainRows(new Reach(model, chain, items));
    assert.deepEqual(
      rows.flatMap((row) => row.items).sort((a, b) => a - b),
      [...chain.through(items)].sort((a, b) => a - b),
      `seed ${seed}`,
    );
    for (const row of rows) assert.equal(row.holds === "none", row.reason !== "", `seed ${seed}: ${row.title}`);
    assert.doesNotMatch(chainAsText(model, "n", rows), /undefined|NaN/);
    assert.doesNotMatch(chainInLine(model, rows), /undefined/);
  }
});
