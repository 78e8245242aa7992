import assert from "node:assert/strict";
import { test } from "node:test";

import { nextStop, topmost, trunk } from "../../compile_lens/views/live/web/drawing/walk.js";

/** Boxes as the drawing stores them, without elements. */
function level(parent, places, edges, stubs = []) {
  const made = { parent, boxes: [] };
  made.boxes = Object.entries(places).map(([name, at]) => ({
    name,
    at,
    level: made,
    inside: null,
    into: [],
    out: [],
    stubs: [],
  }));
  const box = (name) => made.boxes.find((one) => one.name === name);
  for (const [from, to] of edges) {
    const edge = { source: box(from), target: box(to) };
    edge.source.out.push(edge);
    edge.target.into.push(edge);
  }
  made.stubs = stubs.map(([owner, outgoing, at]) => {
    const stub = { name: `stub of ${owner}`, owner: box(owner), outgoing, at };
    stub.owner.stubs.push(stub);
    return stub;
  });
  return { ...made, box, all: [...made.boxes, ...made.stubs] };
}

const flat = level(
  null,
  { a: [0, 0, 50, 20], b: [190, 0, 50, 20], c: [10, 50, 50, 20], d: [100, 52, 50, 20], e: [210, 50, 50, 20] },
  [
    ["a", "d"],
    ["a", "c"],
    ["b", "e"],
    ["b", "d"],
  ],
  [["c", true, [10, 90, 40, 14]]],
);
const go = (from, direction, all = flat.all) => nextStop(from, direction, all)?.name ?? null;

test("down leads to the nearest user, up to the nearest input", () => {
  assert.equal(go(flat.box("a"), "down"), "c");
  assert.equal(go(flat.box("b"), "down"), "e");
  assert.equal(go(flat.box("d"), "up"), "b");
  assert.equal(go(flat.box("a"), "up"), null);
  assert.equal(go(flat.box("e"), "down"), null);
});

test("without an edge a stub is next, and leads back to its box", () => {
  assert.equal(go(flat.box("c"), "down"), "stub of c");
  assert.equal(go(flat.stubs[0], "up"), "c");
  assert.equal(go(flat.stubs[0], "down"), null);
});

test("left and right stay in the row", () => {
  assert.equal(go(flat.box("c"), "right"), "d");
  assert.equal(go(flat.box("d"), "right"), "e");
  assert.equal(go(flat.box("e"), "left"), "d");
  assert.equal(go(flat.box("a"), "right"), "b");
  assert.equal(go(flat.box("b"), "right"), null);
});

test("an open box is entered from above and left at both ends", () => {
  const outer = level(null, { x: [0, 0, 50, 20], group: [0, 40, 300, 200], y: [0, 260, 50, 20] }, [
    ["x", "group"],
    ["group", "y"],
  ]);
  const group = outer.box("group");
  const inner = level(group, { p: [20, 80, 50, 20], q: [20, 120, 50, 20] }, [["p", "q"]]);
  group.inside = inner;
  const all = [...outer.all, ...inner.all];
  assert.equal(go(outer.box("x"), "down", all), "group");
  assert.equal(go(group, "down", all), "p");
  assert.equal(go(inner.box("q"), "down", all), "y");
  assert.equal(go(inner.box("p"), "up", all), "group");
  assert.equal(go(group, "up", all), "x");
});

test("a box that uses itself is no way on", () => {
  const own = level(null, { a: [0, 0, 10, 10] }, [["a", "a"]]);
  assert.equal(go(own.box("a"), "down", own.all), null);
});

test("the first box is on top, the left one of several", () => {
  assert.equal(topmost(flat.boxes).name, "a");
  assert.equal(topmost([]), null);
});

test("of two that work at the top the left one is the trunk: what comes beside it is a later argument's", () => {
  /** @param {string} kind @param {number[]} at */
  const view = (kind, at) => ({ box: { kind }, at, inside: null, level: { parent: null } });
  const boxes = [
    view("input", [550, 0, 90, 44]),
    view("other", [500, 80, 180, 60]),
    view("view", [1110, 90, 165, 44]),
    { ...view("other", [85, 180, 1000, 2000]), inside: { boxes: [view("other", [97, 260, 280, 90])] } },
  ];
  assert.equal(trunk(boxes, 238, 588), 590, "the layer that is open begins below what is near the top");
});
