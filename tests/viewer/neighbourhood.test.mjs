import assert from "node:assert/strict";
import { test } from "node:test";

import { Neighbourhood, neighbourhoodWords } from "../../compile_lens/views/live/web/graph/neighbourhood.js";

const layout = (boxes, edges, stubs = []) => ({
  width: 0,
  height: 0,
  boxes: Array(boxes).fill([0, 0, 1, 1]),
  edges: edges.map((ends) => ({ ends, points: [], label: null })),
  stubs: stubs.map(([box, outgoing]) => ({ box, outgoing, at: [0, 0, 1, 1], points: [] })),
});
const node = (name, local) => ({ name, kind: "pointwise", lines: [], members: [local], body: -1 });
const group = (name, members, body) => ({ name, kind: "collapsed", lines: [], members, body });
const sorted = (set) => [...set].sort((a, b) => a - b);

/** a → b → c → d → e and a → e, whole: the last edge is cut. */
const chain = {
  op: Array(5).fill(0),
  layouts: [
    layout(
      5,
      [
        [0, 1],
        [1, 2],
        [2, 3],
        [3, 4],
      ],
      [
        [0, true],
        [4, false],
      ],
    ),
  ],
  bodies: [
    {
      layout: 0,
      boxes: ["a", "b", "c", "d", "e"].map(node),
      labels: [],
      stubs: [
        { others: ["e"], lines: [] },
        { others: ["a"], lines: [] },
      ],
    },
  ],
};

test("steps go up and down, and over cut edges", () => {
  const known = new Neighbourhood(chain, { name: "", whole: 0, folded: -1, note: "" });
  assert.deepEqual(sorted(known.around([2], 1).nodes), [1, 2, 3]);
  assert.deepEqual(sorted(known.around([2], 2).nodes), [0, 1, 2, 3, 4]);
  assert.deepEqual(sorted(known.around([0], 1).nodes), [0, 1, 4]);
  const { upstream, downstream, vague } = known.around([4], 3);
  assert.deepEqual([upstream, downstream, vague], [4, 0, 0]);
});

test("what is beside is not a neighbour: up and down are not mixed", () => {
  const fan = {
    op: [0, 0, 0],
    layouts: [
      layout(3, [
        [0, 1],
        [0, 2],
      ]),
    ],
    bodies: [{ layout: 0, boxes: ["a", "b", "c"].map(node), labels: [], stubs: [] }],
  };
  assert.deepEqual(
    sorted(new Neighbourhood(fan, { name: "", whole: 0, folded: -1, note: "" }).around([1], 3).nodes),
    [0, 1],
  );
});

/** x, and two groups: (a → b) → (c → d), closed on the page; insides name items outside of them. */
const nested = (inside) => ({
  op: Array(5).fill(0),
  layouts: [
    layout(3, [
      [0, 1],
      [1, 2],
    ]),
    layout(
      2,
      [[0, 1]],
      [
        [0, false],
        [1, true],
      ],
    ),
    layout(2, [[0, 1]], [[0, false]]),
  ],
  bodies: [
    {
      layout: 0,
      boxes: [node("x", 4), group("first", [0, 1], 1), group("second", [2, 3], inside)],
      labels: [],
      stubs: [],
    },
    {
      layout: 1,
      boxes: [node("a", 0), node("b", 1)],
      labels: [],
      stubs: [
        { others: ["x"], lines: [] },
        { others: [inside < 0 ? "second" : "c"], lines: [] },
      ],
    },
    { layout: 2, boxes: [node("c", 2), node("d", 3)], labels: [], stubs: [{ others: ["b"], lines: [] }] },
  ],
});

test("nodes in closed boxes are known one by one, through the names at their border", () => {
  const known = new Neighbourhood(nested(2), { name: "", whole: -1, folded: 0, note: "" });
  assert.deepEqual(sorted(known.around([1], 1).nodes), [0, 1, 2]);
  assert.deepEqual(sorted(known.around([4], 1).nodes), [0, 4]);
  assert.deepEqual(sorted(known.around([3], 3).nodes), [0, 1, 2, 3]);
  assert.deepEqual(sorted(known.around([0, 1], 1).nodes), [0, 1, 2, 4]);
});

test("a box that cannot be opened counts as one", () => {
  const known = new Neighbourhood(nested(-1), { name: "", whole: -1, folded: 0, note: "" });
  const around = known.around([1], 1);
  assert.deepEqual(sorted(around.nodes), [0, 1, 2, 3]);
  assert.equal(around.vague, 1);
  assert.deepEqual(sorted(known.around([2], 1).nodes), [1, 2, 3]);
});

test("a scene that is not drawn has no neighbours", () => {
  const known = new Neighbourhood(chain, { name: "", whole: -1, folded: -1, note: "" });
  assert.deepEqual(sorted(known.around([2], 2).nodes), [2]);
});

test("the words say what is shown and what is not", () => {
  const around = { nodes: new Set([1, 2, 3]), upstream: 1, downstream: 1, vague: 0 };
  assert.equal(
    neighbourhoodWords("mm", 1, around, 1203, 0),
    "mm and 1 step around it: 1 upstream, 1 downstream; 1,200 other nodes dimmed",
  );
  assert.equal(
    neighbourhoodWords("mm", 2, around, 3, 0),
    "mm and 2 steps around it: 1 upstream, 1 downstream; nothing is left out",
  );
  assert.match(
    neighbourhoodWords("mm", 2, { ...around, vague: 1 }, 4, 2),
    /1 other node dimmed; 2 closed boxes among them hold other nodes too; 1 box that cannot be opened counts as one step$/,
  );
});
