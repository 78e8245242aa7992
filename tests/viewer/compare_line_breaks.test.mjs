// Breaks of overlong lines, and counterparts of an item in another program.

import assert from "node:assert/strict";
import { test } from "node:test";

import { breaksOf } from "../../compile_lens/views/live/web/listing/line_wrap.js";
import { counterparts } from "../../compile_lens/views/live/web/compare/pairs.js";

/**
 * The displayed rows of a line.
 * @param {string} text
 * @param {number} columns
 * @param {number[]} [calls]
 */
function rows(text, columns, calls = []) {
  const { breaks, hang } = breaksOf(text, columns, 0, calls);
  return [0, ...breaks].map((from, i) => (i ? " ".repeat(hang) : "") + text.slice(from, breaks[i]));
}

test("a line that fits is not broken", () => {
  assert.deepEqual(rows("    return x + y", 16), ["    return x + y"]);
  assert.deepEqual(rows("    return x + y   ", 16), ["    return x + y   "]);
});

test("breaks come behind commas, blanks and brackets, and what follows is indented", () => {
  const text = "    y = layer_norm(hidden, (128,), eps=1e-5)";
  assert.deepEqual(rows(text, 30), ["    y = layer_norm(hidden, ", "        (128,), eps=1e-5)"]);
});

test("no row is longer than its pane, and nothing is lost, whatever the text", () => {
  for (const text of ["x".repeat(300), "    a = " + "b + ".repeat(90), " ".repeat(80) + "f(1, 2, 3)"]) {
    for (const columns of [12, 31, 64]) {
      const shown = rows(text, columns);
      const { breaks, hang } = breaksOf(text, columns);
      assert.ok(shown.every((row) => row.trimEnd().length <= columns));
      assert.equal(shown.map((row, i) => (i ? row.slice(hang) : row)).join(""), text);
      assert.ok(breaks.every((end, i) => end > (breaks[i - 1] ?? 0)));
    }
  }
});

test("calls are broken between each other", () => {
  const text = "    return torch.tanh(x) ** 2 + torch.cos(x).cumsum(0) ** 2";
  const [first, second] = rows(text, 48, [11, 24, 28, 30, 32, 44, 54, 59]);
  assert.equal(first, "    return torch.tanh(x) ** 2 + torch.cos(x)".slice(0, 44));
  assert.ok(second.trim().startsWith(".cumsum"));
});

/** Python lines 0 and 1; Dynamo 2, 3; forward 4, 5; loops 6; kernel 7, its line 8. */
const KEYS = ["python", "dynamo", "inference", "inference.loops", "inference.code"];
const STARTS = [0, 2, 4, 6, 7, 9];
const ABOVE = [[], [], [0], [1], [2], [3], [4, 5], [6], [5]];
const model = {
  index: { stages: KEYS.map((key) => ({ key })) },
  stageOf: (/** @type {number} */ item) => STARTS.findLastIndex((start) => start <= item),
};
const chain = {
  above: (/** @type {number} */ item) => ABOVE[item],
  below: (/** @type {number} */ item) => ABOVE.flatMap((above, one) => (above.includes(item) ? [one] : [])),
};

test("what was not matched has no like, though the other has something of its name", () => {
  const partners = new Map([
    [2, 20],
    [4, 40],
  ]);
  const like = (/** @type {number} */ item) => counterparts([item], partners, /** @type {any} */ (model), chain);
  assert.deepEqual(like(4), [40]);
  assert.deepEqual(like(5), [], "its line has others below it that are matched, or not: none is it");
  assert.deepEqual(like(0), [20], "a line is what was read from it");
  assert.deepEqual(like(1), []);
  assert.deepEqual(like(7), [40], "a kernel without a partner is the operators that it computes");
  assert.deepEqual(like(8), [], "and so is a line of one");
});
