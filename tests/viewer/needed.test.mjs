import assert from "node:assert/strict";
import { test } from "node:test";

import { Selection, isNeeded } from "../../compile_lens/views/live/web/data/selection.js";
import { Reach } from "../../compile_lens/views/live/web/data/reasons.js";
import { chainInLine, chainRows } from "../../compile_lens/views/live/web/chain/chain_rows.js";
import { capture } from "./captures.mjs";

// a = sin(x) in line 3, b = cos(x) in line 4: the derivative of each needs the other, and one node is for both.
const MADE = capture(
  [
    [
      -1,
      "python",
      [
        ["m.py:3", "python"],
        ["m.py:4", "python"],
      ],
    ],
    [
      0,
      "dynamo",
      [
        ["a", "pointwise", ["python m.py:3"]],
        ["b", "pointwise", ["python m.py:4"]],
      ],
    ],
    [
      0,
      "joint",
      [
        ["sin", "pointwise", ["dynamo a"]],
        ["cos", "pointwise", ["dynamo b"]],
        ["sin_1", "pointwise", ["dynamo b"]],
        ["neg", "pointwise", ["dynamo b"]],
        ["cos_1", "pointwise", ["dynamo a"]],
      ],
    ],
    [
      0,
      "forward",
      [
        ["sin", "pointwise", ["joint sin", "joint sin_1"]],
        ["cos", "pointwise", ["joint cos", "joint cos_1"]],
      ],
    ],
    [
      0,
      "forward.code",
      [
        ["k", "kernel", ["forward sin", "forward cos"]],
        ["k:4", "line", ["forward sin"]],
        ["k:5", "line", ["forward cos"]],
      ],
    ],
    [
      0,
      "backward",
      [
        ["sin", "pointwise", ["joint sin", "joint sin_1"]],
        ["neg", "pointwise", ["joint neg"]],
      ],
    ],
  ],
  [],
  { "joint sin_1": "cos", "joint neg": "cos", "joint cos_1": "sin" },
);
const sorted = (items) => [...items].sort((a, b) => a - b);
const neededBy = (...addresses) => {
  const own = MADE.items(...addresses);
  const { chain } = MADE;
  return sorted(chain.needed(own, chain.ancestors(own), chain.descendants(own)));
};

test("of what a call became, what only its derivative needs is told apart, but for the backward", () => {
  const wanted = ["joint sin_1", "joint neg", "forward sin", "forward.code k:4"];
  assert.deepEqual(neededBy("dynamo b"), sorted(MADE.items(...wanted)));
  assert.deepEqual(neededBy("python m.py:4"), sorted(MADE.items(...wanted)));
});

test("above a part of the forward stand the forward ops of the gradient", () => {
  const wanted = ["joint sin_1", "dynamo b", "python m.py:4"];
  assert.deepEqual(neededBy("forward.code k:4"), sorted(MADE.items(...wanted)));
  assert.deepEqual(neededBy("forward sin"), sorted(MADE.items(...wanted)));
});

test("a backward is there for derivatives, all of it, and so is what it came from", () => {
  assert.deepEqual(neededBy("backward neg"), []);
  assert.deepEqual(neededBy("backward sin"), []);
  assert.deepEqual(neededBy("joint sin_1"), sorted(MADE.items("forward sin", "forward.code k", "forward.code k:4")));
});

test("marks say it where no pin has more", () => {
  const selection = new Selection(MADE.chain);
  selection.toggle(MADE.items("dynamo b"), "b");
  const sin = MADE.item("forward sin");
  assert.ok(isNeeded(selection.marks.get(sin)));
  assert.ok(!isNeeded(selection.marks.get(MADE.item("forward cos"))));
  assert.ok(!isNeeded(0));
  selection.toggle(MADE.items("dynamo a"), "a");
  assert.ok(!isNeeded(selection.marks.get(sin)));
});

test("the list of a chain has them in rows of their own, with words", () => {
  const rows = chainRows(new Reach(MADE.model, MADE.chain, MADE.items("dynamo b")));
  const found = rows
    .filter((row) => row.stage >= 3)
    .map((row) => [row.title, row.items.map((i) => MADE.index.names[i]).join()]);
  assert.deepEqual(found, [
    ["forward", "cos"],
    ["forward: needed by the derivative of cos", "sin"],
    ["forward code", "k"],
    ["forward code, lines", "k:5"],
    ["forward code: needed by the derivative of cos, lines", "k:4"],
    ["backward", "sin,neg"],
  ]);
  assert.ok(!/sin/.test(chainInLine(MADE.model, rows).split(";")[0]), "the chain in one line is that of the call");
  const up = chainRows(new Reach(MADE.model, MADE.chain, MADE.items("forward.code k:4")));
  assert.deepEqual(
    up.slice(0, 2).map((row) => [row.title, row.items.length]),
    [
      ["Python", 1],
      ["Python: forward op of this gradient", 1],
    ],
  );
});
