import assert from "node:assert/strict";
import test from "node:test";
import { Culling } from "../../compile_lens/views/live/web/drawing/culling.js";

/** @param {number} x @param {number} y */
const box = (x, y) => ({
  at: [x, y, 100, 40],
  out: [],
  far: false,
  element: null,
  level: { x: 0, y: 0, parent: null },
});
const column = (count) => Array.from({ length: count }, (_, i) => box(0, 60 * i));
const edge = (top, bottom) => ({
  far: false,
  element: null,
  level: { x: 0, y: 0 },
  bounds: () => [50, top, 50, bottom],
});
const view = (y) => ({ x: 0, y, width: 400, height: 300 });

test("of a large drawing only what is near the view is wanted", () => {
  const boxes = column(1000);
  const wanted = [];
  const culling = new Culling((piece) => wanted.push(piece));
  const drawing = { boxes, stubs: [], roving: null };
  culling.look(drawing, view(6000));
  const near = boxes.filter((one) => !one.far);
  assert.ok(near.length >= 5 && near.length < 20);
  assert.ok(near.includes(boxes[100]) && near.includes(boxes[104]));
  assert.deepEqual(wanted, []);
  culling.look(drawing, view(12000));
  assert.ok(boxes[100].far && !boxes[200].far && wanted.includes(boxes[200]));
  assert.deepEqual(new Set(wanted), new Set(boxes.filter((one) => !one.far)));
});

test("a small drawing is there as a whole, and a large one once it is small", () => {
  const boxes = column(1000);
  const culling = new Culling(() => undefined);
  culling.look({ boxes, stubs: [], roving: null }, view(0));
  assert.ok(boxes[50].far);
  const few = boxes.slice(0, 60);
  culling.forget();
  culling.look({ boxes: few, stubs: [], roving: null }, view(0));
  assert.ok(few.every((one) => !one.far));
});

test("layers of a model are more than a small drawing: what is far from the view is not styled when something lights up", () => {
  const boxes = column(72);
  new Culling(() => undefined).look({ boxes, stubs: [], roving: null }, view(0));
  assert.ok(!boxes[0].far && boxes.filter((one) => one.far).length > 60);
});

test("a small move asks for nothing", () => {
  const boxes = column(1000);
  const wanted = [];
  const culling = new Culling((piece) => wanted.push(piece));
  culling.look({ boxes, stubs: [], roving: null }, view(6000));
  culling.look({ boxes, stubs: [], roving: null }, view(6100));
  assert.deepEqual(wanted, []);
});

test("what has the focus stays, with the boxes around it", () => {
  const boxes = column(1000);
  const frame = boxes[3];
  const inner = { ...box(10, 190), level: { x: 0, y: 0, parent: frame } };
  boxes.push(inner);
  const culling = new Culling(() => undefined);
  culling.look({ boxes, stubs: [], roving: inner }, view(30000));
  assert.ok(!inner.far && !frame.far && boxes[4].far);
});

test("an edge that crosses the view is there though both of its ends are not", () => {
  const boxes = column(1000);
  const [through, above] = [edge(0, 59000), edge(0, 500)];
  boxes[0].out.push(through, above);
  const culling = new Culling(() => undefined);
  culling.look({ boxes, stubs: [], roving: null }, view(30000));
  assert.ok(boxes[0].far && !through.far && above.far);
});

test("a view without a size decides nothing", () => {
  const boxes = column(1000);
  new Culling(() => undefined).look({ boxes, stubs: [], roving: null }, { x: 0, y: 0, width: 0, height: 0 });
  assert.ok(boxes.every((one) => !one.far));
});
