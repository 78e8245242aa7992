import assert from "node:assert/strict";
import { test } from "node:test";

import { LineLinks } from "../../compile_lens/views/live/web/listing/line_links.js";

const items = new Map([
  [1, [100]],
  [2, [100, 101]],
  [5, [102]],
  [99, [103]],
]);
const ranges = [
  { first: 4, last: 6, item: 7, whole: true },
  { first: 1, last: 2, item: 8, whole: false },
];

test("items of lines and lines of items, many to many", () => {
  const links = new LineLinks(6, items, ranges);
  assert.deepEqual(
    [0, 1, 2, 3, 4, 5].map((line) => links.itemsOf(line)),
    [[100], [100, 101], [], [7], [102], [7]],
  );
  assert.deepEqual(links.linesOf(100), [0, 1]);
  assert.deepEqual(links.linesOf(101), [1]);
  assert.deepEqual(links.linesOf(7), [3], "a range stands at its first line");
  assert.deepEqual(links.linesOf(103), [], "a line past the text");
  assert.deepEqual(links.linesOf(5), []);
  assert.deepEqual(new LineLinks(3, new Map(), []).linesOf(0), []);
});

test("marks light the lines of their items, and only lines that change are told", () => {
  const links = new LineLinks(6, items, ranges);
  const light = (entries) => links.light(new Map(entries)).sort((a, b) => a - b);
  assert.deepEqual(light([[100, 1]]), [0, 1]);
  assert.deepEqual([...links.bits], [1, 1, 0, 0, 0, 0]);
  assert.deepEqual(
    light([
      [100, 1],
      [101, 64],
    ]),
    [1],
  );
  assert.deepEqual([...links.bits], [1, 65, 0, 0, 0, 0]);
  assert.deepEqual(
    light([
      [100, 1],
      [101, 64],
    ]),
    [],
  );
  assert.deepEqual(
    light([
      [102, 2],
      [7, 4],
      [3, 1],
    ]),
    [0, 1, 4],
  );
  assert.deepEqual([...links.bits], [0, 0, 0, 0, 2, 0]);
  assert.deepEqual([...links.rangeBits], [4, 0]);
  assert.deepEqual(light([]), [4]);
  assert.deepEqual([...links.rangeBits], [0, 0]);
  assert.deepEqual(links.lit, []);
});

test("many marks and few marks give the same light", () => {
  const many = new Map(Array.from({ length: 500 }, (_, i) => [i + 1, [i % 90, 90 + (i % 7)]]));
  const few = new LineLinks(500, many, []);
  const all = new LineLinks(500, many, []);
  const marks = new Map([
    [3, 1],
    [91, 2],
    [92, 64],
  ]);
  few.light(marks);
  all.light(new Map([...marks, ...Array.from({ length: 300 }, (_, i) => [1000 + i, 1])]));
  const slow = Array.from({ length: 500 }, (_, i) =>
    many.get(i + 1).reduce((mark, item) => mark | (marks.get(item) ?? 0), 0),
  );
  assert.deepEqual([...few.bits], slow);
  assert.deepEqual([...all.bits], slow);
});
