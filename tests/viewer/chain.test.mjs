import assert from "node:assert/strict";
import { test } from "node:test";

import { Chain } from "../../compile_lens/views/live/web/data/chain.js";
import { dice, diced } from "./captures.mjs";

/** An index of random links; each item comes from items before it, some of them named twice. */
function links(seed) {
  const roll = dice(seed);
  const count = 1 + roll(40);
  const offsets = [0];
  const above = [];
  for (let item = 0; item < count; item++) {
    for (let k = item ? roll(4) : 0; k > 0; k--) above.push(roll(item));
    offsets.push(above.length);
  }
  return {
    names: Array.from({ length: count }, (_, i) => `n${i}`),
    offsets,
    above,
    within: [],
    stages: [],
    derivatives: [],
  };
}

/** Distance of everything reachable from some items, by trying every link until nothing changes. */
function distances(count, edges, start) {
  const far = new Map(start.map((item) => [item, 0]));
  for (let changed = true; changed;) {
    changed = false;
    for (const [from, to] of edges) {
      const way = (far.get(from) ?? Infinity) + 1;
      if (way < (far.get(to) ?? Infinity)) {
        far.set(to, way);
        changed = true;
      }
    }
  }
  for (const item of start) far.delete(item);
  return far;
}

function edgesOf({ offsets, above }) {
  return offsets.slice(1).flatMap((end, item) => above.slice(offsets[item], end).map((to) => [item, to]));
}

const sorted = (items) => [...items].sort((a, b) => a - b);

test("ancestors and descendants are what a naive search finds, each once, nearest first", () => {
  for (let seed = 1; seed <= 200; seed++) {
    const index = links(seed);
    const chain = new Chain(index);
    const up = edgesOf(index);
    const down = up.map(([from, to]) => [to, from]);
    const roll = dice(seed + 1000);
    const count = index.names.length;
    const start = [...new Set(Array.from({ length: 1 + roll(3) }, () => roll(count)))];
    for (const [found, edges] of [
      [chain.ancestors(start), up],
      [chain.descendants(start), down],
    ]) {
      const wanted = distances(count, edges, start);
      assert.deepEqual(sorted(found), sorted(wanted.keys()), `seed ${seed}`);
      for (let i = 1; i < found.length; i++)
        assert.ok(wanted.get(found[i - 1]) <= wanted.get(found[i]), `nearest first, seed ${seed}`);
    }
    assert.deepEqual(
      sorted(chain.through(start)),
      sorted(new Set([...start, ...chain.ancestors(start), ...chain.descendants(start)])),
    );
  }
});

test("what is above an item has the item below it", () => {
  for (let seed = 1; seed <= 50; seed++) {
    const index = links(seed);
    const chain = new Chain(index);
    const up = [];
    const down = [];
    for (let item = 0; item < index.names.length; item++) {
      for (const other of chain.above(item)) up.push([item, other]);
      for (const other of chain.below(item)) down.push([other, item]);
    }
    const byNumber = (pairs) => pairs.map(String).sort();
    assert.deepEqual(byNumber(up), byNumber(edgesOf(index)));
    assert.deepEqual(byNumber(down), byNumber(up));
  }
});

test("one item is in the chain of another exactly if that is in its own", () => {
  for (let seed = 1; seed <= 60; seed++) {
    const { chain, index } = diced(seed);
    const through = index.names.map((_, item) => chain.through([item]));
    through.forEach((own, item) => {
      assert.ok(own.has(item));
      for (const other of own) assert.ok(through[other].has(item), `seed ${seed}: ${item} and ${other}`);
    });
  }
});

test("a chain follows its own direction only: what shares an origin is not linked", () => {
  // 0 became 1 and 2; 3 came from 2.
  const chain = new Chain({
    names: ["a", "b", "c", "d"],
    offsets: [0, 0, 1, 2, 3],
    above: [0, 0, 2],
    within: [],
    stages: [],
    derivatives: [],
  });
  assert.deepEqual(sorted(chain.through([1])), [0, 1]);
  assert.deepEqual(sorted(chain.through([3])), [0, 2, 3]);
  assert.deepEqual(sorted(chain.through([0])), [0, 1, 2, 3]);
  assert.deepEqual(chain.ancestors([]), []);
  assert.deepEqual(sorted(chain.through(new Set([1, 3]))), [0, 1, 2, 3], "any iterable");
});

test("a line lights the loop that it stands in, and not what else that came from", () => {
  // 0 and 1 are nodes, 2 the loop of both, 3 its kernel; 4 is a line for 0, 5 one for 1, 6 one for neither.
  const chain = new Chain({
    names: ["sin", "cos", "op0", "k", "k:1", "k:2", "k:3"],
    offsets: [0, 0, 0, 2, 3, 4, 5, 5],
    above: [0, 1, 2, 0, 1],
    within: [[4, 5, 2, 3]],
    stages: [{ key: "forward.loops", start: 2, count: 1 }],
    derivatives: [],
  });
  assert.deepEqual(chain.ancestors([4]), [0, 2, 3]);
  assert.deepEqual(chain.descendants([4]), []);
  assert.deepEqual(sorted(chain.descendants([0])), [2, 3, 4], "a line for the other node is none of this one's");
  assert.deepEqual(sorted(chain.descendants([2])), [3, 4, 5]);
  assert.deepEqual(sorted(chain.ancestors([2])), [0, 1]);
  assert.deepEqual(sorted(chain.through([6])), [6]);
  assert.equal(chain.needed([4], chain.ancestors([4]), []).size, 0);
});
