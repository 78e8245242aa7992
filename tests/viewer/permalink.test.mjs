// The hash of a page: what goes in comes out, and malicious input does nothing.

import assert from "node:assert/strict";
import { test } from "node:test";
import { placeOf, placeOfFinding, placeOfStory } from "../../compile_lens/views/live/web/panes/arrangement.js";
import { MOST_TABS } from "../../compile_lens/views/live/web/panes/tab_groups.js";
import {
  decodeRanges,
  decodeState,
  encodeRanges,
  encodeState,
  linkTrouble,
} from "../../compile_lens/views/live/web/shell/permalink.js";

/** @import { Index, IndexStage } from "../../compile_lens/views/live/web/types.d.ts" */

const ODD = [
  "sin",
  "100%",
  "%41",
  "%",
  "a&b=c#d",
  "pin=1:2;3,4",
  "=x",
  "</script><img src=x onerror=alert(1)>",
  "\u{1f600}\u{1f9ea}",
  "\u202eevil\u202c",
  "half \ud83d pair",
  "half \ude00 pair",
  "a b+c",
  "",
  "__proto__",
  "constructor",
  "3-5.9",
  "/home/ada/f.py:7",
  "x".repeat(10_000),
];

/**
 * Python lines, then two compilations with a few stages each; every stage contains every odd name.
 * @returns {Index}
 */
function oddIndex() {
  /** @type {IndexStage[]} */
  const stages = [];
  /** @type {string[]} */
  const names = [];
  /** @param {number} compilation @param {string} key @param {string[]} own */
  const add = (compilation, key, own) => {
    stages.push({ compilation, key, title: key, start: names.length, count: own.length, kernels: 0, part: "" });
    names.push(...own);
  };
  add(-1, "python", ODD);
  for (const compilation of [0, 1]) {
    add(compilation, "dynamo", ODD);
    add(compilation, "empty", []);
    add(compilation, "odd:key,of;a&stage", ODD);
    add(compilation, "forward.groups", [...ODD, "twice", "twice"]);
  }
  return { stages, names, offsets: [], above: [], noOrigin: [], lineTexts: [], units: [], kinds: [], kindOf: [] };
}

const index = oddIndex();

/** A small generator of numbers, the same in every run. @param {number} seed */
function numbers(seed) {
  let state = seed;
  return (/** @type {number} */ below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

test("a state comes back from its hash, whatever the names", () => {
  const next = numbers(7);
  for (let round = 0; round < 300; round++) {
    const stages = index.stages.map((_, i) => i);
    /** @type {{ place: ReturnType<typeof placeOf>, view: string }[][]} */
    const panes = [];
    for (let n = next(6); n > 0; n--) {
      const stage = stages.splice(next(stages.length), 1)[0];
      const fusion = index.stages[stage].key.endsWith(".groups") && next(2) === 1;
      const pane = { place: placeOf(stage, fusion), view: fusion ? "" : ["", "graph", "text", "module"][next(4)] };
      if (panes.length && next(2)) panes[next(panes.length)].push(pane);
      else panes.push([pane]);
    }
    const pins = [];
    for (let n = next(7); n > 0; n--) {
      const stage = index.stages.filter((s) => s.count)[next(7)];
      const items = new Set();
      for (let k = 1 + (next(2) ? 0 : next(stage.count)); k > 0; k--) items.add(stage.start + next(stage.count));
      const found = [...items];
      pins.push({ items: found, name: found.length === 1 && next(2) ? index.names[found[0]] : `box ${ODD[next(10)]}` });
    }
    const state = { compilation: next(2), panes: next(4) ? panes : null, pins };
    const hash = encodeState(state, index);
    assert.match(hash, /^[\w\-.!~*'()%&=;:,/]*$/, "a hash holds no sign that an address or a page could misread");
    const back = decodeState(`#${hash}`, index);
    if (hash === "") {
      assert.equal(back, null);
      continue;
    }
    assert.ok(back);
    assert.equal(back.compilation, state.compilation);
    assert.deepEqual(back.panes, state.panes);
    // An empty name is shown as that of the item.
    assert.deepEqual(
      back.pins.map((pin) => pin.items),
      pins.map((pin) => pin.items),
    );
    for (const [i, pin] of pins.entries()) assert.equal(back.pins[i].name, pin.name || index.names[pin.items[0]]);
  }
});

test("an item whose name stands twice in its stage comes back as itself", () => {
  const stage = index.stages[4];
  assert.equal(stage.key, "forward.groups");
  const second = stage.start + stage.count - 1;
  const hash = encodeState({ compilation: 0, panes: null, pins: [{ items: [second], name: "twice" }] }, index);
  assert.deepEqual(decodeState(hash, index)?.pins, [{ items: [second], name: "twice" }]);
});

test("a name of 10,000 characters makes no hash of that length", () => {
  const item = ODD.length - 1;
  const hash = encodeState({ compilation: 0, panes: null, pins: [{ items: [item], name: ODD[item] }] }, index);
  assert.ok(hash.length < 500);
  assert.deepEqual(decodeState(hash, index)?.pins[0].items, [item]);
});

test("a pin of items in several stages comes back whole", () => {
  const items = [index.stages[1].start, index.stages[1].start + 1, index.stages[3].start];
  const hash = encodeState({ compilation: 0, panes: null, pins: [{ items, name: "some" }] }, index);
  assert.deepEqual(decodeState(hash, index)?.pins, [{ items, name: "some" }]);
});

test("no pane at all is a state of its own", () => {
  const hash = encodeState({ compilation: 0, panes: [], pins: [] }, index);
  assert.deepEqual(decodeState(hash, index), { compilation: 0, panes: [], pins: [] });
});

test("broken, foreign and hostile hashes name nothing and throw nothing", () => {
  for (const hash of [
    "",
    "#",
    "#section-2",
    "#%",
    "#c=99",
    "#c=-1",
    "#c=1e3",
    "#open=9:dynamo",
    "#open=0:nothing",
    "#open=0:__proto__",
    "#open=%E0%A4%A:dynamo",
    "#open=0:dynamo:<img>",
    "#open=0:dynamo:fusion",
    "#pin=",
    "#pin=;;;",
    "#pin=x;0:dynamo:",
    "#pin=x;0:dynamo:=no%20such%20name",
    "#pin=x;0:dynamo:=%FF",
    "#pin=x;0:dynamo:5-3",
    "#pin=x;0:dynamo:0-999999999",
    "#pin=x;0:dynamo:99999999999999999999",
    "#pin=x;0:empty:0",
    "#pin=%00;constructor:constructor:=constructor",
    `#pin=x;${"0:dynamo:0-1;".repeat(20_000)}`,
  ]) {
    assert.equal(decodeState(hash, index), null, hash.slice(0, 60));
  }
});

test("what is sound in a hash counts beside what is not", () => {
  const state = decodeState(
    "#open=0:dynamo:text,0:gone,7:dynamo,0:dynamo&pin=;0:dynamo:=sin&pin=;0:gone:=sin&x=y",
    index,
  );
  assert.deepEqual(state, {
    compilation: 0,
    panes: [[{ place: placeOf(1), view: "text" }]],
    pins: [{ items: [index.stages[1].start], name: "sin" }],
  });
});

test("no more panes and pins than a page can show", () => {
  const stages = [...index.stages, ...index.stages].map((stage, i) => ({ ...stage, key: `stage ${i}` }));
  const many = { ...index, stages };
  const all = stages.map((_, stage) => ({ place: placeOf(stage), view: "" }));
  for (const panes of [[all], all.map((pane) => [pane])])
    assert.equal(
      decodeState(encodeState({ compilation: 0, panes, pins: [] }, many), many)?.panes?.flat().length,
      MOST_TABS,
    );
  const pins = ODD.map((name, item) => ({ items: [item], name: `n${item}` }));
  assert.equal(decodeState(encodeState({ compilation: 0, panes: null, pins }, index), index)?.pins.length, 6);
});

test("ranges come back, and those that repeat end early", () => {
  for (const some of [[0], [3, 4, 5, 9], [9, 3, 4], [1, 0, 2], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]]) {
    assert.deepEqual(decodeRanges(encodeRanges(some), 10), some);
  }
  assert.equal(encodeRanges([3, 4, 5, 9]), "3-5.9");
  assert.deepEqual(decodeRanges("0-10", 10), []);
  // Without a limit this would count to 10,000 for each of its 10,000 runs.
  assert.ok(decodeRanges("0-9998.".repeat(10_000), 10_000).length <= 10_000);
});

test("a finding is remembered by its key, where the page has it", () => {
  const index = oddIndex();
  const findings = ["fusion", "", "memory", "story", ""];
  const panes = [
    [
      { place: placeOfFinding("memory", 2), view: "" },
      { place: placeOfStory(), view: "" },
    ],
    [{ place: placeOf(0), view: "" }],
  ];
  const hash = encodeState({ compilation: 0, panes, pins: [] }, index);
  assert.match(hash, /^open=why:memory\/why:story,/);
  assert.deepEqual(decodeState(hash, index, findings)?.panes, panes);
  assert.deepEqual(
    decodeState("open=why:memory,why:memory,why:fusion", index, findings)?.panes?.map(([{ place }]) => place.finding),
    ["memory", "fusion"],
  );
  for (const bad of ["open=why:lowering", "open=why:outcome", "open=why:", "open=why", "open=why:__proto__"])
    assert.equal(decodeState(bad, index, findings), null);
  assert.equal(decodeState("open=why:memory", index), null);
});

/** Lines of Python and one stage. @param {string[]} lines @param {string[]} nodes @returns {Index} */
function small(lines, nodes) {
  const stage = { title: "", kernels: 0, part: "" };
  return {
    ...index,
    stages: [
      { ...stage, compilation: -1, key: "python", start: 0, count: lines.length },
      { ...stage, compilation: 0, key: "dynamo", start: lines.length, count: nodes.length },
    ],
    names: [...lines, ...nodes],
  };
}

/** @param {Index} index @param {number[]} items */
const pinned = (index, ...items) =>
  encodeState(
    { compilation: 0, panes: null, pins: items.map((item) => ({ items: [item], name: index.names[item] })) },
    index,
  );

test("a line goes by its file, not by the folder of one machine", () => {
  const here = small(["/home/ada/work/f.py:7", "/home/ada/work/f.py:8"], ["sin"]);
  const there = small(["C:\\Users\\bob\\f.py:7", "C:\\Users\\bob\\f.py:8"], ["sin"]);
  const hash = pinned(here, 1);
  assert.ok(!decodeURIComponent(hash).includes("ada") && decodeURIComponent(hash).includes("=f.py:8"));
  for (const other of [here, there]) {
    assert.deepEqual(decodeState(hash, other)?.pins[0].items, [1]);
    assert.equal(linkTrouble(hash, other), "", "the same capture, on whichever machine");
  }
  // Two files of one name are distinguished by as many folders as necessary, without guessing.
  const two = small(["/a/x/f.py:7", "/a/y/f.py:7", "/f.py:9", "/b/f.py:9"], ["sin"]);
  for (const item of [0, 1, 2, 3]) assert.deepEqual(decodeState(pinned(two, item), two)?.pins[0].items, [item]);
  assert.ok(decodeURIComponent(pinned(two, 1)).includes("=y/f.py:7"));
  assert.equal(decodeState("#pin=;python:source:=f.py%3A7", two), null);
  // Links of earlier versions name the whole path.
  assert.deepEqual(decodeState("#pin=;python:source:=%2Fhome%2Fada%2Fwork%2Ff.py%3A7", here)?.pins[0].items, [0]);
});

test("a link says when it was made for another capture, and what is not in this one", () => {
  const then = small(["/f.py:7"], ["sin", "cos", "tan"]);
  const now = small(["/f.py:7"], ["sin", "tan"]);
  assert.match(linkTrouble(pinned(then, 1), now), /another capture: not all/);
  assert.equal(
    linkTrouble(pinned(then, 1, 2), now),
    "This link was made for another capture. It names what is not in this one: cos.",
  );
  assert.deepEqual(decodeState(pinned(then, 1, 2), now)?.pins[0].items, [1], "what there is, is shown");
  assert.equal(
    linkTrouble("#pin=;0:dynamo:=gone&open=0:joint,9:forward&c=4", now).replace(/.*: /, ""),
    "gone, joint, forward, and 1 more.",
  );
  for (const fine of ["", "#", "#section-2", "#of=", "#x=y", pinned(now, 0, 1, 2)])
    assert.equal(linkTrouble(fine, now), "");
});

test("a call is named as Python takes it, and comes back with its nodes and its name", () => {
  const stage = { title: "", kernels: 0, firsts: [], part: "" };
  const unit = { compilation: 0, colour: 0, line: 0, column: 31, end: 43 };
  const index = {
    ...oddIndex(),
    stages: [
      { ...stage, compilation: -1, key: "python", start: 0, count: 1 },
      { ...stage, compilation: 0, key: "dynamo", start: 1, count: 2 },
    ],
    names: ["/home/ada/f.py:7", "sin", "cos"],
    units: [
      { ...unit, tag: "sin", items: [1], address: "f.py:7:11-23" },
      { ...unit, tag: "cos", items: [2], address: "f.py:7:31-43" },
    ],
  };
  const state = { compilation: 0, panes: null, pins: [{ items: [2], name: "cos" }] };
  const hash = encodeState(state, index);
  assert.match(decodeURIComponent(hash), /pin=cos;python:source:=f\.py:7:31-43/);
  assert.deepEqual(decodeState(hash, index)?.pins, state.pins);
  assert.deepEqual(
    decodeState("pin=;python:source:=f.py:7:31-43", index)?.pins,
    state.pins,
    "also as a person writes it",
  );
  assert.equal(decodeState("pin=;python:source:=f.py:7:31-44", index), null);
});
