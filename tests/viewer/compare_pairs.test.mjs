// Counterparts in two programs: units that are calls in one and lines in the other, kernels by partner.

import assert from "node:assert/strict";
import { test } from "node:test";

import { firstKernels, pairUnits, partnerOf, rarest } from "../../compile_lens/views/live/web/compare/pairs.js";

test("calls and the line that they became are paired, and have one name", () => {
  // In the first: sin, pow; in the second: one line for both, and a line of its own.
  const found = pairUnits(
    [
      [[0], [0]],
      [[1], [0]],
    ],
    [2, 2],
  );
  assert.deepEqual(found.partners, [
    [[0], [0]],
    [[0, 1], []],
  ]);
  const [first, second] = found.names;
  assert.equal(first[0], first[1]);
  assert.equal(first[0], second[0]);
  assert.notEqual(second[0], second[1]);
});

test("units that share some with several on both sides keep names of their own", () => {
  const found = pairUnits(
    [
      [[0], [0]],
      [[0], [1]],
      [[1], [0]],
      [[1], [1]],
    ],
    [2, 2],
  );
  assert.deepEqual(found.partners[0], [
    [0, 1],
    [0, 1],
  ]);
  assert.equal(new Set(found.names.flat()).size, 4);
});

test("the kernels that are open are partners, those that differ first, then one that is new", () => {
  const joined = (side, item) => ({ 10: 2, 20: 1, 21: 2, 22: 2 })[item] ?? -1;
  const partners = [
    [10, 22],
    [null, 20],
    [null, 21],
  ];
  const module = { partners, own: [[], [[22, 3, "only here"]]] };
  assert.deepEqual(firstKernels(module, joined), [10, 22]);
  assert.deepEqual(firstKernels({ partners, own: [[], []] }, joined), [null, 21], "nothing of the pair differs");
  assert.deepEqual(firstKernels({ partners: [[10, 22]], own: [[], []] }, joined), [10, 22]);
  assert.deepEqual(firstKernels({ partners: [], own: [[], []] }, joined), [null, null]);
  assert.equal(partnerOf(module, 0, 10), 22);
  assert.equal(partnerOf(module, 1, 21), null);
  assert.equal(partnerOf(module, 0, 99), undefined);
});

test("a new unit gets the colour that the fewest have", () => {
  assert.equal(rarest([]), 0);
  assert.equal(rarest([0, 2]), 1);
  assert.equal(rarest([0, 1, 2, 3, 4, 5, 0]), 6);
  assert.equal(rarest([...Array(12).keys(), 0]), 1);
});
