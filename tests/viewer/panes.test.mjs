// Panes side by side, their widths, and the lit cards of the strip.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  LEAST_WIDTH,
  byStage,
  carriedOver,
  fusionOf,
  placeOf,
  placeOfFinding,
  placeOfStory,
  roomFor,
  sharesMoved,
  usualCount,
  usualPlaces,
} from "../../compile_lens/views/live/web/panes/arrangement.js";
import { requestedFinding } from "../../compile_lens/views/live/web/panes/finding_tabs.js";
import {
  MOST_TABS,
  regrouped,
  sideBySide,
  withPlace,
  withoutPlace,
} from "../../compile_lens/views/live/web/panes/tab_groups.js";
import { litStages } from "../../compile_lens/views/live/web/chain/strip.js";

/** @import { Place } from "../../compile_lens/views/live/web/panes/arrangement.js" */
/** @import { Compilation, FindingHead, IndexStage } from "../../compile_lens/views/live/web/types.d.ts" */

/**
 * A compilation with these stages, numbered from 1; a key in brackets was not observed.
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

test("two on a narrow page: the source beside the code; all of them below each other on a phone", () => {
  assert.deepEqual(stagesOf(usualPlaces(training, 900, true)), [0, 6]);
  assert.deepEqual(stagesOf(usualPlaces(training, 390, true)), [0, 6, 3]);
  assert.deepEqual([639, 640, 999, 1000].map(usualCount), [3, 2, 2, 3]);
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

test("how many panes fit: three at most, none under its least width; on a phone they do not stand side by side", () => {
  assert.deepEqual([1, 390, 639].map(roomFor), [3, 3, 3]);
  for (let width = 640; width < 3000; width += 7) {
    const room = roomFor(width);
    assert.ok(room * LEAST_WIDTH <= width && room <= 3);
  }
  assert.equal(roomFor(640), 2);
  assert.equal(roomFor(720), 3);
  assert.equal(roomFor(0), 3, "a page that is not laid out yet drops nothing");
});

/** Stages above 4 are code here, 0 is the source. @param {Place} place */
const kind = ({ stage, finding }) => (finding || stage > 4 ? "code" : stage ? "graph" : "source");

/** @param {number[][]} groups */
const grouped = (groups) => groups.map((group) => group.map((stage) => placeOf(stage)));

/** Numbers of the stages. @param {Place[][]} groups */
const numbersOf = (groups) => groups.map(stagesOf);

test("a fourth pane is a tab beside its like, else of the one that was not used for the longest time", () => {
  let groups = /** @type {Place[][]} */ ([]);
  for (const stage of [0, 2, 5]) groups = withPlace(groups, placeOf(stage), 3, kind);
  assert.deepEqual(numbersOf(groups), [[5], [2], [0]]);
  groups = withPlace(groups, placeOf(3), 3, kind);
  assert.deepEqual(numbersOf(groups), [[3, 2], [5], [0]]);
  groups = withPlace(groups, placeOf(0), 3, kind);
  assert.deepEqual(numbersOf(groups), [[0], [3, 2], [5]], "one that is open is not opened twice");
  groups = withPlace(groups, placeOf(2), 3, kind);
  assert.deepEqual(numbersOf(groups), [[2, 3], [0], [5]]);
  assert.deepEqual(numbersOf(withPlace(grouped([[1], [2], [3]]), placeOf(0), 3, kind)), [[0, 3], [1], [2]]);
  assert.deepEqual(numbersOf(withPlace(grouped([[1], [2]]), placeOf(3), 3, kind)), [[3], [1], [2]]);
});

test("a tab does not move the panes", () => {
  let groups = grouped([[4], [2], [0]]);
  groups = withPlace(groups, placeOf(1), 3, kind);
  assert.deepEqual(numbersOf(sideBySide(groups, 3, kind)), [[0], [2], [1, 4]], "it stands where the fourth stood");
  groups = withPlace(groups, placeOf(3), 3, kind);
  assert.deepEqual(numbersOf(sideBySide(groups, 3, kind)), [[0], [2], [3, 1, 4]]);
  groups = withPlace(groups, placeOf(4), 3, kind);
  assert.deepEqual(numbersOf(sideBySide(groups, 3, kind)), [[0], [2], [4, 3, 1]]);
});

test("no more tabs than a page can keep: those that were not used for the longest time go", () => {
  let groups = grouped([[0], [1], [5]]);
  for (let stage = 6; stage < 60; stage++) groups = withPlace(groups, placeOf(stage), 3, kind);
  assert.equal(groups.flat().length, MOST_TABS);
  assert.deepEqual(stagesOf(groups[0]).slice(0, 2), [59, 58]);
  assert.equal(groups.length, 3, "a pane of one tab stays");
});

test("a tab that is closed uncovers the one before it, the last one takes its pane with it", () => {
  const groups = grouped([[3, 2], [5]]);
  assert.deepEqual(withoutPlace(groups, placeOf(3).key), grouped([[2], [5]]));
  assert.deepEqual(withoutPlace(groups, placeOf(5).key), grouped([[3, 2]]));
  assert.deepEqual(withoutPlace(groups, placeOf(9).key), groups);
});

test("panes stand in the order of the stages, the fusion right after its groups", () => {
  const groups = [[placeOf(6)], [placeOf(5, true)], [placeOf(0)], [placeOf(5)]];
  assert.deepEqual(
    sideBySide(groups, 5, kind).map(([place]) => place.key),
    ["stage 0", "stage 5", "fusion 5", "stage 6"],
  );
});

test("where it gets narrow the panes that were used last stay, the others are tabs of them, and come back", () => {
  const groups = grouped([[9], [1, 2], [5]]);
  assert.deepEqual(
    sideBySide(groups, 2, kind),
    grouped([
      [1, 2],
      [9, 5],
    ]),
  );
  assert.deepEqual(sideBySide(groups, 1, kind), grouped([[9, 1, 2, 5]]));
  assert.deepEqual(sideBySide(groups, 3, kind), grouped([[1, 2], [5], [9]]));
  assert.deepEqual(groups, grouped([[9], [1, 2], [5]]), "what was chosen is not changed by it");
  assert.deepEqual(sideBySide([], 3, kind), []);
});

test("another compilation: the like of each place, without those that it does not have", () => {
  /** @type {IndexStage[]} */
  const stages = [
    [-1, "python"],
    [0, "dynamo"],
    [0, "forward"],
    [0, "forward.groups"],
    [1, "dynamo"],
    [1, "forward.groups"],
  ].map(([compilation, key]) => /** @type {any} */ ({ compilation, key }));
  const other = (/** @type {Place[][]} */ groups) => regrouped(groups, (place) => carriedOver(place, stages, 0, 1));
  assert.deepEqual(other([[placeOf(0)], [placeOf(1), placeOf(2)], [placeOf(3, true)]]), [
    [placeOf(0)],
    [placeOf(4)],
    [placeOf(5, true)],
  ]);
  assert.deepEqual(other([[placeOf(2)], [placeOf(0)]]), [[placeOf(0)]], "a pane of which nothing is left goes");
  assert.deepEqual(other([[placeOf(4)], [placeOf(1)]]), [[placeOf(4)]], "one that is open already stands once");
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

test("findings stand behind all stages, in their own order, the story last, and stay when the compilation changes", () => {
  const places = [placeOfStory(), placeOfFinding("memory", 3), placeOf(7), placeOfFinding("fusion", 0), placeOf(0)];
  assert.deepEqual(
    [...places].sort(byStage).map((place) => place.key),
    ["stage 0", "stage 7", "finding fusion", "finding memory", "finding story"],
  );
  const stages = /** @type {IndexStage[]} */ (
    /** @type {unknown} */ ([{ compilation: -1 }, { compilation: 0, key: "dynamo" }, { compilation: 1, key: "dynamo" }])
  );
  assert.deepEqual(
    [placeOfFinding("fusion", 0), placeOf(1)].map((place) => carriedOver(place, stages, 0, 1)),
    [placeOfFinding("fusion", 0), placeOf(2)],
  );
});

test("a page opens on what was asked for by name, the benchmark before its ablations", () => {
  const findings = (/** @type {string[]} */ ...missing) =>
    /** @type {FindingHead[]} */ (
      ["fusion", "ablations", "benchmark"].map((key) => ({ key, missing: missing.includes(key) ? "not run" : "" }))
    );
  assert.equal(requestedFinding(findings("ablations", "benchmark")), "");
  assert.equal(requestedFinding(findings("benchmark")), "ablations");
  assert.equal(requestedFinding(findings()), "benchmark");
});
