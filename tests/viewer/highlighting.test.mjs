// The classes of boxes, edges and stubs: those of their state change, and all others stay.

import assert from "node:assert/strict";
import test from "node:test";
import { OWN } from "../../compile_lens/views/live/web/data/selection.js";
import { Highlighting } from "../../compile_lens/views/live/web/drawing/highlighting.js";

/** An element that only has classes and attributes. */
function element(classes) {
  const names = new Set(classes.split(" "));
  const attributes = new Map();
  return {
    classList: {
      add: (...more) => more.forEach((name) => names.add(name)),
      remove: (...less) => less.forEach((name) => names.delete(name)),
    },
    get classes() {
      return [...names].sort().join(" ");
    },
    getAttribute: (name) => attributes.get(name) ?? null,
    setAttribute: (name, value) => attributes.set(name, value),
  };
}

/** Two boxes and the edge between them, as a drawing has them. */
function drawing() {
  const level = { parent: null, gone: false };
  const box = (local) => ({
    level,
    box: { members: [local], body: -1 },
    items: () => [local],
    inside: null,
    units: new Map(),
    out: [],
    into: [],
    stubs: [],
    bits: 0,
    hits: 0,
    states: "",
    near: false,
    pinned: false,
    current: false,
    extra: null,
    at: [0, 0, 10, 10],
    element: element("node kind-pointwise"),
    card: element("graph-stop"),
  });
  const [source, target] = [box(0), box(1)];
  const edge = { level, source, target, bits: 0, states: "", element: element("edge") };
  source.out.push(edge);
  target.into.push(edge);
  const stub = { level, owner: source, states: "", element: element("stub") };
  source.stubs.push(stub);
  const highlighting = new Highlighting(
    0,
    () => false,
    { all: [] },
    () => null,
  );
  highlighting.moved([source, target], [source, target]);
  return { highlighting, source, edge, stub };
}

test("a class that is set elsewhere survives every change of the state", () => {
  const { highlighting, source, edge, stub } = drawing();
  edge.element.classList.add("dtype-float16");
  source.element.classList.add("own");
  stub.element.classList.add("own");
  highlighting.mark(
    new Map([
      [0, OWN | 1],
      [1, OWN | 1],
    ]),
  );
  assert.equal(edge.element.classes, "dtype-float16 edge lit lit-pin-0 lit-pins");
  assert.equal(source.element.classes, "kind-pointwise lit lit-pin-0 lit-pins node own");
  highlighting.dim(new Set([0, 1]));
  assert.equal(edge.element.classes, "dtype-float16 edge lit lit-pin-0 lit-pins near");
  assert.equal(stub.element.classes, "near own stub");
  highlighting.dim(null);
  highlighting.mark(new Map());
  assert.equal(edge.element.classes, "dtype-float16 edge");
  assert.equal(source.element.classes, "kind-pointwise node own");
  assert.equal(stub.element.classes, "own stub");
});

test("another state takes the place of the one before", () => {
  const { highlighting, edge } = drawing();
  const both = (bits) =>
    new Map([
      [0, bits],
      [1, bits],
    ]);
  highlighting.mark(both(OWN | 1));
  highlighting.mark(both(OWN | 2));
  assert.equal(edge.element.classes, "edge lit lit-pin-1 lit-pins");
});
