import assert from "node:assert/strict";
import test from "node:test";
import { Payload, readPart } from "../../compile_lens/views/live/web/data/payload.js";

const plain = async (text) => text;

test("bodies that are texts are read one by one, once", () => {
  const bodies = [
    { layout: 0, boxes: [{ name: 'a"b' }] },
    { layout: 1, boxes: [] },
  ];
  const part = readPart(JSON.stringify({ op: [1], bodies: bodies.map((body) => JSON.stringify(body)) }));
  assert.equal(part.bodies.length, 2);
  assert.deepEqual(part.bodies[0], bodies[0]);
  assert.equal(part.bodies[0], part.bodies[0]);
  assert.equal(part.bodies[7], undefined);
  assert.deepEqual([...part.bodies], bodies);
});

test("bodies that are objects stay as they are", () => {
  const part = { bodies: [{ layout: 3 }], names: ["x"] };
  assert.deepEqual(readPart(JSON.stringify(part)), part);
});

test("a part is unpacked once, alone or among the small ones", async () => {
  const asked = [];
  const parts = { small: JSON.stringify({ core: { version: 1 } }), g1: JSON.stringify({ op: [2] }) };
  const payload = new Payload(parts, (text) => (asked.push(text), plain(text)));
  assert.deepEqual(await payload.get("core"), { version: 1 });
  assert.deepEqual(await Promise.all([payload.get("g1"), payload.get("g1")]), [{ op: [2] }, { op: [2] }]);
  assert.equal(asked.length, 2);
  await assert.rejects(payload.get("g2"), /no part g2/);
});
