import assert from "node:assert/strict";
import { test } from "node:test";

import {
  curvesInto,
  figuresOf,
  firstNames,
  fusionPlan,
  rowsToShow,
  savedBytes,
} from "../../compile_lens/views/live/web/fusion/plan.js";
import { capture, dice } from "./captures.mjs";

const post = (...names) => names.map((name) => `inference.post_grad ${name}`);
const loops = (...names) => names.map((name) => `inference.loops ${name}`);

const MADE = capture([
  [-1, "python", [["m.py:1", "python"]]],
  [
    0,
    "inference.post_grad",
    [
      ["x", "input"],
      ["sin", "pointwise"],
      ["sum", "reduction"],
      ["mm", "matmul"],
      ["cat", "pointwise"],
    ],
  ],
  [
    0,
    "inference.loops",
    [
      ["x", "input", post("x")],
      ["op0", "pointwise", [...post("sin"), "python m.py:1"]],
      ["op1", "reduction", post("sin", "sum")],
      ["op2", "extern", post("mm")],
      ["op3", "nop", post("cat")],
      ["op4", "pointwise", post("cat")],
      ["op5", "nop"],
    ],
  ],
  [
    0,
    "inference.groups",
    [
      ["x", "input", loops("x")],
      ["op2", "extern", loops("op2")],
      ["op1_op0", "reduction", loops("op0", "op1")],
      ["op3", "nop", loops("op3")],
    ],
  ],
  [
    0,
    "inference.code",
    [
      ["cpp_0", "kernel", ["inference.groups op1_op0"]],
      ["extern.mm", "kernel", ["inference.groups op2"]],
      ["cpp_0:3", "line", ["inference.groups op1_op0"]],
    ],
  ],
]);

const START = MADE.index.stages[2].start;

function data(traffic, members, targets) {
  return { traffic, members, strings: ["", "Pointwise 8"], target: targets };
}

const BEFORE = {
  stage: 2,
  data: data(
    [
      [1, 100, 40],
      [2, 40, 4],
      [3, 20, 20],
    ],
    [],
    [0, 1, 1, 0, 0, 1, 0],
  ),
};
// The record gives the order in which the members run; the group of the call has none and is described by its links.
const AFTER = {
  stage: 3,
  data: data(
    [
      [1, 20, 20],
      [2, 100, 4],
    ],
    [[2, [START + 2, START + 1]]],
    [0, 0, 0, 0],
  ),
};

const plan = () => fusionPlan(MADE.model, MADE.chain, BEFORE, AFTER);
const names = (cards) => cards.map((card) => card.name);

test("groups in the order in which they run, each with its loops in theirs; inputs are none", () => {
  const { rows } = plan();
  assert.deepEqual(
    rows.map((row) => [row.group?.name ?? null, names(row.loops)]),
    [
      ["op2", ["op2"]],
      ["op1_op0", ["op1", "op0"]],
      [null, ["op4"]],
    ],
  );
  assert.deepEqual(
    rows.map((row) => row.kernels),
    [["extern.mm"], ["cpp_0"], []],
  );
});

test("nops stand apart, alone or as a group, and are not counted", () => {
  const { nops, loops: before, groups: after } = plan();
  assert.deepEqual(
    nops.map((nop) => nop.item),
    [...MADE.items("inference.loops op3", "inference.groups op3", "inference.loops op5")],
  );
  assert.deepEqual([before, after], [4, 2]);
});

test("a card says what it computes, by the names of the stage before and without Python lines", () => {
  const [call, fused] = plan().rows;
  assert.deepEqual(
    fused.loops.map((loop) => loop.what),
    [["sin", "sum"], ["sin"]],
  );
  assert.deepEqual(fused.group.what, ["sin", "sum"], "each once");
  assert.deepEqual(call.group.what, ["mm"]);
  assert.equal(fused.loops[1].target, "Pointwise 8");
});

test("bytes saved: what the loops move alone less what the group moves, only where all is known", () => {
  const [call, fused, loose] = plan().rows;
  assert.equal(fused.saved, 100 + 40 + 40 + 4 - 100 - 4);
  assert.equal(call.saved, 0);
  assert.equal(loose.saved, null);
  const card = (reads, writes) => ({ reads, writes });
  assert.equal(savedBytes(card(-1, 4), [card(8, 8)]), null);
  assert.equal(savedBytes(card(4, 4), [card(8, 8), card(8, -1)]), null);
  assert.equal(savedBytes(card(4, 4), []), null, "nothing to compare with");
  assert.equal(savedBytes(card(40, 4), [card(8, 8)]), -28, "more is said as well");
  assert.equal(savedBytes(card(0, 0), [card(0, 0)]), 0);
});

test("on any fusion every loop that runs stands in exactly one row", () => {
  for (let seed = 1; seed <= 60; seed++) {
    const roll = dice(seed);
    const count = roll(30);
    const made = Array.from({ length: count }, (_, i) => [
      `op${i}`,
      ["pointwise", "reduction", "extern", "nop", "input"][roll(5)],
    ]);
    const groups = [];
    for (let at = 0; at < count;) {
      const next = made.slice(at, at + 1 + roll(4));
      const own = next.filter(([, kind]) => kind !== "input");
      at += next.length;
      if (own.length && roll(5))
        groups.push([
          own.map(([name]) => name).join("_"),
          own.every(([, kind]) => kind === "nop") ? "nop" : "pointwise",
          own.map(([name]) => `inference.loops ${name}`),
        ]);
    }
    const one = capture([
      [-1, "python", []],
      [0, "inference.loops", made],
      [0, "inference.groups", groups],
    ]);
    const empty = (n) => ({ traffic: [], members: [], strings: [""], target: Array(n).fill(0) });
    const found = fusionPlan(
      one.model,
      one.chain,
      { stage: 1, data: empty(count) },
      { stage: 2, data: empty(groups.length) },
    );
    const placed = [...found.rows.flatMap((row) => row.loops), ...found.nops].filter(
      (card) => card.item < one.index.stages[2].start,
    );
    const wanted = made.flatMap(([, kind], item) => (kind === "input" ? [] : [item]));
    const running = found.rows
      .flatMap((row) => row.loops)
      .filter((loop) => loop.kind !== "nop")
      .map((loop) => loop.item)
      .sort((a, b) => a - b);
    assert.deepEqual(
      [...new Set(placed.map((card) => card.item))].sort((a, b) => a - b),
      wanted,
      `seed ${seed}`,
    );
    assert.deepEqual([...new Set(running)], running, "no loop twice");
    const drawn = found.rows.flatMap((row) => row.group ?? []);
    assert.deepEqual(
      drawn.map((group) => group.item),
      [...drawn.map((group) => group.item)].sort((a, b) => a - b),
    );
  }
});

test("of many loops the fused groups come first, and the others on demand", () => {
  const made = plan();
  assert.deepEqual(rowsToShow(made, 400, false), { rows: made.rows, left: 0 });
  const few = rowsToShow(made, 3, false);
  assert.deepEqual([few.rows.map((row) => row.group?.name), few.left], [["op1_op0"], 2]);
  assert.deepEqual(rowsToShow(made, 3, true), { rows: made.rows, left: 0 });
  const alone = { ...made, rows: made.rows.filter((row) => row.loops.length === 1) };
  assert.deepEqual(rowsToShow(alone, 1, false), { rows: alone.rows, left: 0 }, "never an empty view");
});

test("curves start in the middle of each loop and end in the middle of the group", () => {
  assert.deepEqual(curvesInto(1), ["M0 50C50 50 50 50 100 50"]);
  assert.deepEqual(curvesInto(2), ["M0 25C50 25 50 50 100 50", "M0 75C50 75 50 50 100 50"]);
  assert.deepEqual(curvesInto(0), []);
  const heights = curvesInto(7).map((path) => Number(path.match(/^M0 ([\d.]+)C/)[1]));
  heights.forEach((y, i) => assert.ok(y > (i / 7) * 100 && y < ((i + 1) / 7) * 100));
});

test("figures of the ledger by title, of the row that bears the phase's name", () => {
  const ledger = {
    columns: [
      { title: "loops", meaning: "" },
      { title: "bytes after", meaning: "" },
    ],
    rows: [
      { name: "forward", figures: ["10", "~37,764"] },
      { name: "both", figures: ["21"] },
    ],
    notes: [],
  };
  assert.deepEqual(
    [...figuresOf(ledger, "forward")],
    [
      ["loops", "10"],
      ["bytes after", "~37,764"],
    ],
  );
  assert.equal(figuresOf(ledger, "both").get("bytes after"), "—");
  assert.equal(figuresOf(ledger, "backward"), null);
});

test("names in short", () => {
  assert.equal(firstNames(["a", "b"], 3), "a, b");
  assert.equal(firstNames(["a", "b", "c", "d"], 2), "a, b +2");
  assert.equal(firstNames([], 2), "");
});
