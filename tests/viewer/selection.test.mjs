import assert from "node:assert/strict";
import { test } from "node:test";

import {
  Selection,
  COLOURS,
  HOVER,
  OWN,
  SELF,
  coloursOf,
  isNeeded,
} from "../../compile_lens/views/live/web/data/selection.js";
import { diced } from "./captures.mjs";

function selected(seed = 7) {
  const made = diced(seed);
  assert.ok(made.index.names.length > COLOURS + 2, "enough to pin");
  return { ...made, selection: new Selection(made.chain) };
}

test("the bits of the colours, of the preview and of items themselves differ", () => {
  const bits = [...Array.from({ length: COLOURS }, (_, c) => 1 << c), HOVER, SELF, OWN];
  assert.equal(new Set(bits).size, COLOURS + 3);
  for (const one of bits) for (const other of bits) if (one !== other) assert.equal(one & other, 0);
  assert.equal(COLOURS, 6);
  assert.deepEqual(coloursOf(0b100101 | HOVER | SELF), [0, 2, 5]);
  assert.deepEqual(coloursOf(HOVER | SELF), []);
});

test("marks are the union of the chains of all pins and of the preview, and of nothing else", () => {
  for (let seed = 1; seed <= 80; seed++) {
    const made = diced(seed);
    const count = made.index.names.length;
    if (count === 0) continue;
    const selection = new Selection(made.chain);
    for (let k = 0; k < 4; k++) selection.toggle([made.roll(count)], `pin ${k}`);
    if (made.roll(2)) selection.preview([made.roll(count), made.roll(count)], "two");
    const wanted = new Map();
    const light = (items, bit) => {
      for (const item of made.chain.through(items)) wanted.set(item, (wanted.get(item) ?? 0) | bit | OWN);
      for (const item of items) wanted.set(item, (wanted.get(item) ?? 0) | SELF);
    };
    for (const pin of selection.pins) light(pin.items, 1 << pin.colour);
    if (selection.hovered.length) light(selection.hovered, HOVER);
    assert.deepEqual(
      [...selection.marks].sort((a, b) => a[0] - b[0]),
      [...wanted].sort((a, b) => a[0] - b[0]),
      `seed ${seed}`,
    );
  }
});

test("a second click takes a pin out, and its colour is free again", () => {
  const { selection } = selected();
  for (const item of [0, 1, 2]) selection.toggle([item], `n${item}`);
  assert.deepEqual(
    selection.pins.map((pin) => pin.colour),
    [0, 1, 2],
  );
  assert.ok(selection.isPinned([1]));
  selection.toggle([1], "n1");
  assert.ok(!selection.isPinned([1]));
  assert.deepEqual(
    selection.pins.map((pin) => pin.name),
    ["n0", "n2"],
  );
  selection.toggle([3, 4], "box");
  assert.equal(selection.pins[2].colour, 1);
  assert.ok(selection.isPinned([3, 4]));
  assert.ok(!selection.isPinned([3]), "a box is not its members");
});

test("with more pins than colours the oldest gives way, and no colour stands twice", () => {
  const { selection } = selected();
  for (let item = 0; item < COLOURS + 2; item++) {
    selection.toggle([item], `n${item}`);
    assert.equal(new Set(selection.pins.map((pin) => pin.colour)).size, selection.pins.length);
  }
  assert.deepEqual(
    selection.pins.map((pin) => pin.items[0]),
    [2, 3, 4, 5, 6, 7],
  );
});

test("listeners hear each change once, and those that left hear none", () => {
  const { selection } = selected();
  const heard = [];
  const leave = selection.subscribe((what) => heard.push(what));
  selection.preview([0], "n0");
  selection.preview([0], "n0");
  selection.toggle([1], "n1");
  selection.toggle([], "nothing");
  selection.clear();
  assert.deepEqual(heard, ["hover", "pins", "pins"]);
  leave();
  selection.preview([2], "n2");
  assert.deepEqual(heard, ["hover", "pins", "pins"]);
});

test("clearing and replacing leave nothing of what was", () => {
  const { selection, chain } = selected();
  selection.toggle([0], "n0");
  selection.preview([1], "n1");
  selection.clear();
  assert.deepEqual([selection.pins, selection.hovered, selection.hoveredName, selection.marks.size], [[], [], "", 0]);
  selection.replace(Array.from({ length: COLOURS + 1 }, (_, item) => ({ items: [item], name: `n${item}` })));
  assert.deepEqual(
    selection.pins.map((pin) => pin.colour),
    [0, 1, 2, 3, 4, 5],
  );
  selection.replace([{ items: [2], name: "n2" }]);
  assert.deepEqual(new Set(selection.marks.keys()), chain.through([2]));
});

test("who clicks on what they point at has its chain walked once", () => {
  const { chain, selection } = selected();
  selection.preview([2], "two");
  const before = chain.walks;
  selection.toggle([2], "two");
  assert.equal(chain.walks - before, 2, "up and down");
  assert.equal(selection.marks.get(2), 1 | HOVER | SELF | OWN);
  selection.preview([], "");
  assert.equal(selection.marks.get(2), 1 | SELF | OWN);
});

test("a focus that goes ends what it lit, and not what the pointer lit elsewhere since", () => {
  const { selection } = selected();
  const part = (...inside) => ({ contains: (other) => inside.includes(other) });
  globalThis.Node ??= class {};
  const within = new globalThis.Node();
  const [graph, source] = [part(within), part()];
  selection.preview([1], "one", source);
  selection.preview([2], "two", graph);
  selection.left({ relatedTarget: null }, source);
  assert.deepEqual(selection.hovered, [2]);
  selection.left({ relatedTarget: within }, graph);
  assert.deepEqual(selection.hovered, [2], "it stays in there");
  selection.left({ relatedTarget: null }, graph);
  assert.deepEqual(selection.hovered, []);
});
