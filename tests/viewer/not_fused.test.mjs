import assert from "node:assert/strict";
import { test } from "node:test";
import { pairOf, pairWords, pairLines, notFusedPairs } from "../../compile_lens/views/live/web/data/not_fused.js";
import { originWord } from "../../compile_lens/views/live/web/code/kernel_facts.js";

const strings = [
  "",
  "too large",
  "The kernel would become too large.",
  "Raise the limit.",
  "~4,000 B",
  "extern",
  "A library call.",
  "the second reads what the first writes",
  "both read the same",
];
const data = {
  strings,
  notFused: [
    { first: 1, second: 2, how: 7, reason: 1, sentence: 2, remedy: 3, saved: 4 },
    { first: 0, second: 2, how: 8, reason: 5, sentence: 6, remedy: 0, saved: 0 },
  ],
};
const names = ["op0", "op1", "op2"];

test("pairs read their words", () => {
  const [first, second] = notFusedPairs(data);
  assert.deepEqual(first, {
    first: 1,
    second: 2,
    how: "the second reads what the first writes",
    reason: "too large",
    sentence: strings[2],
    remedy: strings[3],
    saved: "~4,000 B",
  });
  assert.equal(second.saved, "");
});

test("a pair says all that is known of it and nothing else", () => {
  const [first, second] = notFusedPairs(data).map(pairLines);
  assert.deepEqual(first, [
    "not fused, too large: the second reads what the first writes",
    "The kernel would become too large.",
    "fusing them could save at most ~4,000 B (modelled)",
    "to try: Raise the limit.",
  ]);
  assert.deepEqual(second, ["not fused, extern: both read the same", "A library call."]);
});

test("a group names each that it is not fused with, whichever runs first", () => {
  const pairs = notFusedPairs(data);
  const name = (local) => names[local];
  assert.deepEqual(pairWords(pairs, 1, name), [
    "op2: too large. The kernel would become too large. Fusing them could save at most ~4,000 B.",
  ]);
  assert.deepEqual(
    pairWords(pairs, 2, name).map((line) => line.split(":")[0]),
    ["op1", "op0"],
  );
  assert.deepEqual(pairWords(pairs, 7, name), []);
});

test("a pair is found from either side", () => {
  const pairs = notFusedPairs(data);
  assert.equal(pairOf(pairs, 2, 1), pairs[0]);
  assert.equal(pairOf(pairs, 1, 2), pairs[0]);
  assert.equal(pairOf(pairs, 0, 1), undefined);
});

test("a line says which operators other kernels compute as well", () => {
  assert.equal(originWord(["cos"], new Map()), "← cos");
  const whose = new Map([
    ["cos", "for the derivative of sin"],
    ["neg", "for the derivative of sin"],
  ]);
  assert.equal(originWord(["cos", "neg"], new Map(), whose), "← cos, neg, for the derivative of sin");
  assert.equal(originWord(["mul"], new Map(), whose), "← mul");
  assert.equal(originWord(["cos"], new Map([["cos", "k1"]])), "← cos · again, also in k1");
  assert.equal(
    originWord(["sin", "cos"], new Map([["cos", "k1, k2, k3"]])),
    "← sin, cos · cos again, also in k1 and 2 more",
  );
  assert.equal(originWord(["a", "b", "c", "d"], new Map()), "← a, b, c and 1 more");
});
