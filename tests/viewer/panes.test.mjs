// Which panes stand side by side and how wide they are, and which cards of the strip are lit.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  LEAST_WIDTH,
  carriedOver,
  fusionOf,
  placeOf,
  placeOfFinding,
  roomFor,
  sharesMoved,
  sideBySide,
  usualCount,
  usualPlaces,
  withPlace,
} from "../../compile_lens/views/viewer/web/shell/arrangement.js";
import { litStages } from "../../compile_lens/views/viewer/web/shell/strip.js";

/** @import { Place } from "../../compile_lens/views/viewer/web/shell/arrangement.js" */
/** @import { Compilation, IndexStage } from "../../compile_lens/views/viewer/web/types.d.ts" */

/**
 * A compilation with these stages, numbered from 1; a key in brackets was not seen.
 * @param {...string} keys
 * @returns {Compilation}
 */
function compiled(...keys) {
  let stage = 0;
  /** @type {Map<string, any>} */
  const lanes = new Map();
  for (const key of keys) {
    const missing = key.startsWith("(");
    const name = key.replace(/[()]/g, "");
    const phase = /^(forward|backward|inference)/.exec(name)?.[0] ?? "";
    const lane = lanes.get(phase) ?? { phase, steps: [] };
    lanes.set(phase, lane);
    lane.steps.push({ key: name, missing: missing ? "cache hit" : "", stage: missing ? -1 : ++stage });
  }
  return /** @type {any} */ ({ lanes: [...lanes.values()] });
}

/** @param {Place[]} places */
const stagesOf = (places) => places.map((place) => place.stage);

const training = compiled(
  "dynamo",
  "joint",
  "forward",
  "forward.loops",
  "forward.groups",
  "forward.code",
  "backward",
  "backward.code",
);

test("three panes on a wide page: source, forward, its code", () => {
  assert.deepEqual(stagesOf(usualPlaces(training, 1280, true)).sort(), [0, 3, 6]);
  assert.deepEqual(stagesOf(usualPlaces(training, 0, true)).sort(), [0, 3, 6]);
});

test("two on a narrow page: the source beside the code; one on a phone", () => {
  assert.deepEqual(stagesOf(usualPlaces(training, 900, true)), [0, 6]);
  assert.deepEqual(stagesOf(usualPlaces(training, 390, true)), [0]);
  assert.deepEqual([639, 640, 999, 1000].map(usualCount), [1, 2, 2, 3]);
});

test("the usual panes where stages are missing", () => {
  assert.deepEqual(
    stagesOf(usualPlaces(compiled("dynamo", "inference", "inference.code"), 1280, true)).sort(),
    [0, 2, 3],
  );
  assert.deepEqual(stagesOf(usualPlaces(compiled("dynamo", "(forward)", "(forward.code)"), 1280, true)), [0, 1]);
  assert.deepEqual(stagesOf(usualPlaces(compiled("dynamo", "forward"), 900, true)), [0, 2]);
  assert.deepEqual(stagesOf(usualPlaces(compiled("dynamo", "forward"), 390, false)), [2]);
  assert.deepEqual(stagesOf(usualPlaces(compiled("forward.loops"), 1280, false)), [1]);
  assert.deepEqual(stagesOf(usualPlaces(compiled("(dynamo)"), 1280, true)), [0]);
  assert.deepEqual(usualPlaces(undefined, 1280, false), []);
});

test("how many panes fit: one on a phone, never one under its least width, five at most", () => {
  assert.deepEqual([1, 390, 639].map(roomFor), [1, 1, 1]);
  for (let width = 640; width < 3000; width += 7) {
    const room = roomFor(width);
    assert.ok(room * LEAST_WIDTH <= width && room <= 5);
  }
  assert.equal(roomFor(640), 2);
  assert.equal(roomFor(1000), 4);
  assert.equal(roomFor(1200), 5);
  assert.equal(roomFor(0), 5, "a page that is not laid out yet drops nothing");
});

test("a sixth pane replaces the one that was not used for the longest time", () => {
  let open = /** @type {Place[]} */ ([]);
  for (const stage of [3, 1, 4, 2, 5]) open = withPlace(open, placeOf(stage), 5);
  assert.deepEqual(stagesOf(sideBySide(open, 5)), [1, 2, 3, 4, 5]);
  open = withPlace(open, placeOf(3), 5);
  assert.equal(open.length, 5, "one that is open is not opened twice");
  open = withPlace(open, placeOf(6), 5);
  assert.deepEqual(stagesOf(sideBySide(open, 5)), [2, 3, 4, 5, 6]);
});

test("panes stand in the order of the stages, the fusion right after its groups", () => {
  const open = [placeOf(6), placeOf(5, true), placeOf(0), placeOf(5)];
  assert.deepEqual(
    sideBySide(open, 5).map((place) => place.key),
    ["stage 0", "stage 5", "fusion 5", "stage 6"],
  );
});

test("where it gets narrow the most recently used panes stay, and the others come back", () => {
  const open = [placeOf(9), placeOf(1), placeOf(5)];
  assert.deepEqual(stagesOf(sideBySide(open, 2)), [1, 9]);
  assert.deepEqual(stagesOf(sideBySide(open, 1)), [9]);
  assert.deepEqual(stagesOf(sideBySide(open, 5)), [1, 5, 9]);
});

test("another compilation: the like of each pane, without those that it does not have", () => {
  /** @type {IndexStage[]} */
  const stages = [
    [-1, "python"],
    [0, "dynamo"],
    [0, "forward"],
    [0, "forward.groups"],
    [1, "dynamo"],
    [1, "forward.groups"],
  ].map(([compilation, key]) => /** @type {any} */ ({ compilation, key }));
  const open = [placeOf(0), placeOf(1), placeOf(2), placeOf(3, true)];
  assert.deepEqual(carriedOver(open, stages, 0, 1), [placeOf(0), placeOf(4), placeOf(5, true)]);
  assert.deepEqual(
    carriedOver([placeOf(4), placeOf(1)], stages, 0, 1),
    [placeOf(4)],
    "one that is open already stands once",
  );
});

test("a fusion needs the loops and the groups", () => {
  const lanes = compiled("forward.loops", "forward.groups", "backward.loops", "(backward.groups)").lanes;
  assert.deepEqual(
    lanes.map((lane) => fusionOf(lane)?.groups.stage),
    [2, undefined],
  );
});

test("moving a border keeps the sum and the least widths", () => {
  for (const by of [-5000, -100, 0, 37, 100, 5000]) {
    const [left, right] = sharesMoved([1, 2], [400, 800], by);
    assert.ok(Math.abs(left + right - 3) < 1e-9);
    assert.ok((left / 3) * 1200 >= LEAST_WIDTH - 1e-6 && (right / 3) * 1200 >= LEAST_WIDTH - 1e-6);
  }
  const [left, right] = sharesMoved([1, 2], [400, 800], 100);
  assert.ok(Math.abs((left / (left + right)) * 1200 - 500) < 1e-9, "the border follows the pointer");
  assert.deepEqual(sharesMoved([1, 1], [230, 230], 50), [1, 1], "where both are at their least nothing moves");
});

test("the cards that are lit: bits of all items of a stage, none of the others", () => {
  const stages = /** @type {IndexStage[]} */ (
    [
      [0, 3],
      [3, 0],
      [3, 2],
      [5, 4],
    ].map(([start, count]) => /** @type {any} */ ({ start, count }))
  );
  const lit = litStages(
    new Map([
      [8, 1],
      [0, 64],
      [4, 2],
      [3, 128],
      [99, 1],
    ]),
    stages,
  );
  assert.deepEqual([...lit].sort(), [
    [0, 64],
    [2, 130],
    [3, 1],
  ]);
  assert.equal(litStages(new Map(), stages).size, 0);
});

test("findings stand behind all stages, in their own order, and stay when the compilation changes", () => {
  const places = [placeOfFinding("memory", 3), placeOf(7), placeOfFinding("fusion", 0), placeOf(0)];
  assert.deepEqual(
    sideBySide(places, 5).map((place) => place.key),
    ["stage 0", "stage 7", "finding fusion", "finding memory"],
  );
  const stages = /** @type {IndexStage[]} */ (
    /** @type {unknown} */ ([{ compilation: -1 }, { compilation: 0, key: "dynamo" }, { compilation: 1, key: "dynamo" }])
  );
  assert.deepEqual(carriedOver([placeOfFinding("fusion", 0), placeOf(1)], stages, 0, 1), [
    placeOfFinding("fusion", 0),
    placeOf(2),
  ]);
});
