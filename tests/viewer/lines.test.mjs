import assert from "node:assert/strict";
import { test } from "node:test";

import { Folds, Lines, firstAbove, withMatches } from "../../compile_lens/views/live/web/listing/lines.js";

/** Pseudorandom numbers that are the same each time. */
function dice(seed) {
  let state = seed;
  return (below) => {
    state = (state * 1103515245 + 12345) % 2147483648;
    return Math.floor((state / 2147483648) * below);
  };
}

function made(seed, length) {
  const roll = dice(seed);
  const text = Array.from({ length }, () => "ab c\n\tß"[roll(7)]).join("");
  const inks = [];
  for (let at = 0; at < length - 5;) {
    const run = 1 + roll(5);
    inks.push(run * 16 + roll(4));
    at += run;
  }
  return { text, inks };
}

/** The ink of each character, computed the slow way. */
function inkOf({ text, inks }) {
  const all = inks.flatMap((run) => Array(run >> 4).fill(run & 15));
  return Array.from({ length: text.length }, (_, i) => all[i] ?? 0);
}

test("lines are what a split gives, a newline at the end starting none", () => {
  for (const text of ["", "a", "a\n", "a\nb", "\n", "\n\n", "a\n\nb\n", "\ufeffa\r\nb"]) {
    const lines = new Lines({ text, inks: [] });
    const wanted = text.split("\n");
    if (wanted[wanted.length - 1] === "") wanted.pop();
    const got = Array.from({ length: lines.count }, (_, i) => lines.line(i));
    assert.deepEqual(got, wanted, JSON.stringify(text));
  }
});

test("pieces hold the text of their line in the inks of its characters, in any order of asking", () => {
  for (let seed = 1; seed < 60; seed++) {
    const source = made(seed, 40 + seed);
    const lines = new Lines(source);
    const inks = inkOf(source);
    for (let line = lines.count - 1; line >= 0; line--) {
      const pieces = lines.pieces(line);
      assert.equal(pieces.map(([text]) => text).join(""), lines.line(line));
      let at = lines.start(line);
      for (const [text, ink] of pieces) {
        for (const _ of text.split("")) assert.equal(ink, inks[at++]);
      }
      for (let i = 1; i < pieces.length; i++)
        assert.notEqual(pieces[i][1], pieces[i - 1][1], "neighbours are one piece");
    }
  }
});

test("a cut line ends at its limit and tears no character apart", () => {
  const lines = new Lines({ text: "ab😀cd\n", inks: [2 * 16 + 1] });
  assert.deepEqual(lines.pieces(0, 3), [["ab", 1, -1]]);
  assert.deepEqual(lines.pieces(0, 4), [
    ["ab", 1, -1],
    ["😀", 0, -1],
  ]);
  assert.equal(lines.widest(100), 6);
  assert.equal(lines.widest(5), 5);
});

test("the line of a place in the text", () => {
  const lines = new Lines({ text: "ab\n\ncd\n", inks: [] });
  assert.deepEqual(
    [0, 2, 3, 4, 6].map((at) => lines.at(at)),
    [0, 0, 1, 2, 2],
  );
});

test("what is looked for is found as it stands, capital letters or not", () => {
  const lines = new Lines({ text: "Sin(x) + sin(y)\n.*sin\nİsin", inks: [] });
  assert.deepEqual(lines.find("sin", 10), { starts: [0, 9, 18, 23], more: false });
  assert.deepEqual(lines.find("sin(", 10), { starts: [0, 9], more: false });
  assert.deepEqual(lines.find(".*", 10), { starts: [16], more: false });
  assert.deepEqual(lines.find("sin", 2), { starts: [0, 9], more: true });
  assert.deepEqual(lines.find("", 2), { starts: [], more: false });
});

test("pieces are cut at matches, those that begin before the line or reach past it too", () => {
  for (let seed = 1; seed < 40; seed++) {
    const source = made(seed, 90);
    const lines = new Lines(source);
    for (const wanted of ["a", "ab", " c"]) {
      const { starts } = lines.find(wanted, 1000);
      for (let line = 0; line < lines.count; line++) {
        const start = lines.start(line);
        const cut = withMatches(lines.pieces(line), start, starts, wanted.length);
        assert.equal(cut.map(([text]) => text).join(""), lines.line(line));
        let at = start;
        for (const [text, , match] of cut) {
          const holds = starts.findIndex((from) => from <= at && at < from + wanted.length);
          assert.equal(match, holds);
          at += text.length;
          if (match >= 0) assert.ok(at <= starts[match] + wanted.length);
        }
      }
    }
  }
});

/** Rows computed the slow way: numbers are lines, `fN` folds. */
function rowsOf(folds) {
  const rows = [];
  for (let line = 0; line < folds.count; line++) {
    const fold = folds.folds.findIndex((f) => f.first <= line && line <= f.last);
    if (fold >= 0 && folds.folds[fold].first === line) rows.push(`f${fold}`);
    if (fold < 0 || folds.open[fold]) rows.push(line);
  }
  return rows;
}

test("rows and lines agree with every fold open or closed", () => {
  const given = [
    { first: 12, last: 20, label: "tail" },
    { first: 1, last: 3, label: "head" },
    { first: 4, last: 6, label: "next to it" },
  ];
  for (let state = 0; state < 8; state++) {
    const folds = new Folds(18, given);
    assert.equal(folds.rows, 18 - 3 - 3 - 7 + 3);
    for (let i = 0; i < 3; i++) folds.set(i, Boolean(state & (1 << i)));
    const rows = rowsOf(folds);
    assert.equal(folds.rows, rows.length);
    rows.forEach((what, row) => {
      const { line, fold } = folds.at(row);
      assert.equal(fold >= 0 ? `f${fold}` : line, what);
      if (fold >= 0) assert.equal(folds.foldRows[fold], row);
    });
    for (let line = 0; line < 18; line++) {
      const shown = rows.indexOf(line);
      assert.equal(folds.row(line), shown >= 0 ? shown : rows.indexOf(`f${folds.foldOf(line)}`));
    }
  }
});

test("bits gather at the places of their rows, those of a closed fold at its row", () => {
  const folds = new Folds(10, [{ first: 2, last: 7, label: "a" }]);
  const lines = Uint8Array.from([1, 0, 2, 0, 0, 4, 0, 0, 0, 8]);
  const closed = Uint8Array.from([6]);
  assert.equal(folds.rows, 5);
  assert.deepEqual([...folds.summary(lines, closed, 5)], [1, 6, 0, 0, 8]);
  folds.set(0, true);
  assert.deepEqual([...folds.summary(lines, closed, 11)], [1, 0, 0, 2, 0, 0, 4, 0, 0, 0, 8]);
  assert.deepEqual([...folds.summary(lines, closed, 2)], [1 | 2, 4 | 8]);
});

test("folds that overlap, end past the text or save no room are left out or cut", () => {
  const folds = new Folds(10, [
    { first: 2, last: 5, label: "a" },
    { first: 4, last: 7, label: "overlaps" },
    { first: 7, last: 7, label: "one line" },
    { first: 9, last: 99, label: "past the end" },
    { first: 11, last: 12, label: "outside" },
  ]);
  assert.deepEqual(folds.folds, [
    { first: 1, last: 4, label: "a" },
    { first: 8, last: 9, label: "past the end" },
  ]);
  assert.equal(new Folds(0, []).rows, 0);
});

test("the first number above a value", () => {
  const numbers = [1, 3, 3, 7];
  for (let value = 0; value < 9; value++) {
    const found = numbers.findIndex((n) => n > value);
    assert.equal(firstAbove(numbers, value, 4), found < 0 ? 4 : found);
  }
});
