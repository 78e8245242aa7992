import assert from "node:assert/strict";
import { test } from "node:test";

import {
  arranged,
  boxesDrawn,
  closedBodies,
  FRAME_BAR,
  Holders,
  initialForm,
  Shapes,
} from "../../compile_lens/views/live/web/drawing/scene.js";
import { Stretch } from "../../compile_lens/views/live/web/drawing/stretch.js";

/** Numbers from 0 to 1, the same for the same seed. */
function random(seed) {
  let state = seed * 2654435761 + 1;
  return () => {
    state = (state * 1664525 + 1013904223) % 4294967296;
    return state / 4294967296;
  };
}

/**
 * A drawing like those of the layout: boxes in ranks, of different heights, edges from rank to rank, some over
 * several ranks with several curves, stubs as boxes of their own; boxes that contain bodies, three levels deep.
 */
function made(seed) {
  const next = random(seed);
  const between = (low, high) => low + Math.floor(next() * (high - low + 1));
  const data = { bodies: [], layouts: [], op: [] };
  const body = (depth) => {
    const number = data.bodies.push(null) - 1;
    const ranks = [];
    const rects = [];
    let y = between(0, 20);
    const count = between(1, 5);
    for (let rank = 0; rank < count; rank++) {
      let x = between(0, 80);
      const row = [];
      const height = 60;
      for (let i = between(1, 4); i > 0; i--) {
        const [w, h] = [between(56, 150) + next(), between(20, height)];
        row.push(rects.push([x, y + (height - h) / 2, w, h]) - 1);
        x += w + between(8, 40);
      }
      ranks.push(row);
      y += height + between(20, 40);
    }
    // The last box of some ranks is a stub at the first one of the rank above.
    const stubs = [];
    const boxes = [];
    const at = new Map();
    ranks.forEach((row, rank) => {
      for (const i of row) {
        const stub = rank > 0 && row.length > 1 && i === row.at(-1) && next() < 0.5;
        if (stub) stubs.push({ rank, rectangle: rects[i] });
        else at.set(i, boxes.push(rects[i]) - 1);
      }
    });
    const own = ranks.map((row) => row.filter((i) => at.has(i)).map((i) => at.get(i)));
    const edges = [];
    const bottom = (box) => [boxes[box][0] + boxes[box][2] * next(), boxes[box][1] + boxes[box][3]];
    const top = (box) => [boxes[box][0] + boxes[box][2] * next(), boxes[box][1]];
    for (let rank = 0; rank + 1 < count; rank++) {
      for (const from of own[rank]) {
        const far = between(rank + 1, Math.min(count - 1, rank + 3));
        const to = own[far][between(0, own[far].length - 1)];
        const [[x0, y0], [x1, y1]] = [bottom(from), top(to)];
        const pieces = between(1, 3);
        const points = [x0, y0];
        for (let k = 1; k <= pieces; k++) {
          const [px, py] = [points.at(-2), points.at(-1)];
          const [nx, ny] = k === pieces ? [x1, y1] : [x0 + (x1 - x0) * (k / pieces), y0 + (y1 - y0) * (k / pieces)];
          points.push(px, py + (ny - py) / 3, nx, ny - (ny - py) / 3, nx, ny);
        }
        edges.push({ ends: [from, to], points, label: next() < 0.5 ? [(x0 + x1) / 2 + 20, (y0 + y1) / 2] : null });
      }
    }
    const tails = stubs.map(({ rank, rectangle: [x, y0, w, h] }) => {
      const box = own[rank - 1][0];
      const [bx, by] = bottom(box);
      const end = [x + w / 2, y0];
      return { box, outgoing: true, at: [x, y0, w, h], points: [bx, by, bx, by + 8, end[0], end[1] - 8, ...end] };
    });
    const width = Math.max(...rects.map(([x, , w]) => x + w)) + 4;
    const layout = data.layouts.push({ width, height: y, boxes, edges, stubs: tails }) - 1;
    const held = boxes.map((_, i) => {
      const inside = depth < 3 && next() < 0.6 ? body(depth + 1) : -1;
      const members = inside < 0 ? [data.op.push(0) - 1] : data.bodies[inside].boxes.flatMap((box) => box.members);
      return { name: `box ${number} ${i}`, kind: "pointwise", lines: [], members, body: inside };
    });
    data.bodies[number] = {
      layout,
      boxes: held,
      labels: edges.map(() => ""),
      stubs: tails.map(() => ({ others: ["x"], lines: ["x"] })),
    };
    return number;
  };
  return { data, root: body(0), next };
}

/** Some bodies to open, at random. */
function chosen({ data, next }, share) {
  return new Set(data.bodies.map((_, i) => i).filter(() => next() < share));
}

function levels(placed) {
  return [placed, ...[...placed.inner.values()].flatMap(({ placed: inner }) => levels(inner))];
}

const apart = ([ax, ay, aw, ah], [bx, by, bw, bh]) =>
  ax + aw <= bx + 1e-6 || bx + bw <= ax + 1e-6 || ay + ah <= by + 1e-6 || by + bh <= ay + 1e-6;

/** The distance of a point from the border of a box. */
function fromBorder([x, y, w, h], px, py) {
  const [dx, dy] = [Math.max(x - px, px - x - w, 0), Math.max(y - py, py - y - h, 0)];
  if (dx > 0 || dy > 0) return Math.hypot(dx, dy);
  return Math.min(px - x, x + w - px, py - y, y + h - py);
}

const SEEDS = Array.from({ length: 60 }, (_, i) => i + 1);

test("with everything closed the coordinates are the layout's own", () => {
  for (const seed of SEEDS) {
    const { data, root } = made(seed);
    const { boxes, edges, stubs, width, height } = arranged(data, root, new Set());
    const layout = data.layouts[data.bodies[root].layout];
    assert.deepEqual({ boxes, edges, stubs, width, height }, { ...layout });
  }
});

test("boxes and stubs of a level never overlap, whatever is open", () => {
  let opened = 0;
  for (const seed of SEEDS) {
    const drawing = made(seed);
    for (const share of [0.2, 0.6, 1]) {
      const placed = arranged(drawing.data, drawing.root, chosen(drawing, share));
      for (const { boxes, stubs, inner } of levels(placed)) {
        opened += inner.size;
        const all = [...boxes, ...stubs.map((stub) => stub.at)];
        for (let i = 0; i < all.length; i++)
          for (let j = 0; j < i; j++) assert.ok(apart(all[i], all[j]), `seed ${seed}: ${all[i]} and ${all[j]}`);
      }
    }
  }
  assert.ok(opened > 300, `${opened} boxes were open`);
});

test("what is inside lies inside its frame, below the bar, and levels inside their size", () => {
  for (const seed of SEEDS) {
    const drawing = made(seed);
    for (const { boxes, stubs, inner, width, height } of levels(
      arranged(drawing.data, drawing.root, chosen(drawing, 0.7)),
    )) {
      for (const [x, y, w, h] of [...boxes, ...stubs.map((stub) => stub.at)]) {
        assert.ok(x >= -1e-6 && y >= -1e-6 && x + w <= width + 1e-6 && y + h <= height + 1e-6);
      }
      for (const [i, { placed, x, y }] of inner) {
        const [fx, fy, fw, fh] = boxes[i];
        assert.ok(x >= fx - 1e-6 && x + placed.width <= fx + fw + 1e-6);
        assert.ok(y >= fy + FRAME_BAR - 1e-6 && y + placed.height <= fy + fh + 1e-6);
      }
    }
  }
});

test("closed boxes keep their size, open ones grow", () => {
  for (const seed of SEEDS) {
    const drawing = made(seed);
    for (const { body, boxes, inner } of levels(arranged(drawing.data, drawing.root, chosen(drawing, 0.5)))) {
      const layout = drawing.data.layouts[drawing.data.bodies[body].layout];
      boxes.forEach(([, , w, h], i) => {
        const [, , oldW, oldH] = layout.boxes[i];
        if (inner.has(i)) assert.ok(w > oldW && h >= oldH);
        else assert.deepEqual([w, h], [oldW, oldH]);
      });
    }
  }
});

test("ends of edges and stubs stay on the borders of their boxes", () => {
  for (const seed of SEEDS) {
    const drawing = made(seed);
    for (const { body, boxes, edges, stubs } of levels(arranged(drawing.data, drawing.root, chosen(drawing, 0.6)))) {
      const layout = drawing.data.layouts[drawing.data.bodies[body].layout];
      edges.forEach(({ points }, i) => {
        const [from, to] = layout.edges[i].ends;
        assert.equal((points.length - 2) % 6, 0);
        assert.ok(points.every(Number.isFinite));
        assert.ok(fromBorder(boxes[from], points[0], points[1]) < 1e-6, `seed ${seed}, start of edge ${i}`);
        assert.ok(fromBorder(boxes[to], points.at(-2), points.at(-1)) < 1e-6, `seed ${seed}, end of edge ${i}`);
      });
      stubs.forEach(({ at, points }, i) => {
        assert.ok(fromBorder(boxes[layout.stubs[i].box], points[0], points[1]) < 1e-6);
        assert.ok(fromBorder(at, points.at(-2), points.at(-1)) < 1e-6);
      });
    }
  }
});

test("an end that is a digit off the border of its box stays that near when the box opens", () => {
  const data = {
    bodies: [
      { layout: 0, boxes: [{ body: 1 }, { body: -1 }], labels: [""], stubs: [] },
      { layout: 1, boxes: [{ body: -1 }], labels: [], stubs: [] },
    ],
    layouts: [
      {
        width: 100,
        height: 100,
        boxes: [
          [0, 0, 100, 40],
          [0, 60, 100, 40],
        ],
        edges: [{ ends: [0, 1], points: [50, 39.6, 50, 45, 50, 55, 50, 60.3], label: null }],
        stubs: [],
      },
      { width: 400, height: 900, boxes: [[0, 0, 400, 900]], edges: [], stubs: [] },
    ],
  };
  const { boxes, edges } = arranged(data, 0, new Set([1]));
  assert.ok(Math.abs(boxes[0][1] + boxes[0][3] - 0.4 - edges[0].points[1]) < 1e-6);
  assert.ok(Math.abs(boxes[1][1] + 0.3 - edges[0].points.at(-1)) < 1e-6);
});

test("curves that ran around a box run around its frame", () => {
  const long = [200, 10, 200, 60, 200, 140, 150, 190];
  const data = {
    bodies: [
      { layout: 0, boxes: [{ body: -1 }, { body: 1 }, { body: -1 }], labels: [""], stubs: [] },
      { layout: 1, boxes: [{ body: -1 }], labels: [], stubs: [] },
    ],
    layouts: [
      {
        width: 250,
        height: 200,
        boxes: [
          [0, 0, 220, 10],
          [0, 80, 120, 40],
          [0, 190, 220, 10],
        ],
        edges: [{ ends: [0, 2], points: long, label: [215, 100] }],
        stubs: [],
      },
      { width: 700, height: 800, boxes: [[0, 0, 700, 800]], edges: [], stubs: [] },
    ],
  };
  const { boxes, edges } = arranged(data, 0, new Set([1]));
  const [x, y, w, h] = boxes[1];
  const { points } = edges[0];
  for (let i = 0; i + 7 < points.length; i += 6) {
    for (let t = 0; t <= 1; t += 0.02) {
      const at = (k) =>
        (1 - t) ** 3 * points[i + k] +
        3 * (1 - t) ** 2 * t * points[i + 2 + k] +
        3 * (1 - t) * t * t * points[i + 4 + k] +
        t ** 3 * points[i + 6 + k];
      const [px, py] = [at(0), at(1)];
      assert.ok(!(px > x && px < x + w && py > y && py < y + h), `${px}, ${py} is in ${boxes[1]}`);
    }
  }
  const [labelX, labelY] = edges[0].label;
  assert.ok(labelX > x + w && labelY > y && labelY < y + h);
});

test("equal layers are stretched once, and what did not change is not stretched again", () => {
  const [inside, outside] = [3, 4];
  const layer = (body) => ({ layout: 1, boxes: [{ body }], labels: [], stubs: [] });
  const data = {
    bodies: [
      { layout: 0, boxes: [{ body: 1 }, { body: 2 }], labels: [], stubs: [] },
      layer(inside),
      layer(outside),
      { layout: 2, boxes: [{ body: -1 }], labels: [], stubs: [] },
      { layout: 2, boxes: [{ body: -1 }], labels: [], stubs: [] },
    ],
    layouts: [
      {
        width: 100,
        height: 90,
        boxes: [
          [0, 0, 100, 20],
          [0, 50, 100, 20],
        ],
        edges: [],
        stubs: [],
      },
      { width: 100, height: 20, boxes: [[0, 0, 100, 20]], edges: [], stubs: [] },
      { width: 300, height: 200, boxes: [[0, 0, 300, 200]], edges: [], stubs: [] },
    ],
  };
  const shapes = new Shapes();
  const draw = (...open) => {
    const placed = arranged(data, 0, new Set(open), shapes);
    shapes.turn();
    assert.deepEqual(placed, arranged(data, 0, new Set(open)), "as if nothing were known");
    return [placed.inner.get(0).placed, placed.inner.get(1).placed];
  };
  const [one, other] = draw(1, 2, inside, outside);
  assert.equal(one.edges, other.edges);
  assert.deepEqual([one.body, other.body], [1, 2]);
  const [same, closed] = draw(1, 2, inside);
  assert.equal(same.edges, one.edges);
  assert.notEqual(closed.edges, one.edges);
});

test("opening and closing is no matter of the order", () => {
  for (const seed of SEEDS.slice(0, 10)) {
    const drawing = made(seed);
    const open = [...chosen(drawing, 0.7)];
    assert.deepEqual(
      arranged(drawing.data, drawing.root, new Set(open)),
      arranged(drawing.data, drawing.root, new Set(open.reverse())),
    );
  }
});

test("a stretch gives each part its length and brings nothing closer", () => {
  for (const seed of SEEDS) {
    const next = random(seed);
    const wanted = Array.from({ length: 8 }, () => {
      const low = next() * 500;
      const length = 1 + next() * 100;
      return [low, low + length, length + next() * 400];
    });
    const stretch = new Stretch(wanted);
    for (const [low, high, least] of wanted) assert.ok(stretch.at(high) - stretch.at(low) >= least - 1e-6);
    for (let x = -20; x < 700; x += 7.3) assert.ok(stretch.at(x + 7.3) - stretch.at(x) >= 7.3 - 1e-6);
  }
  const nested = new Stretch([
    [0, 100, 500],
    [40, 60, 300],
  ]);
  assert.ok(Math.abs(nested.at(100) - 500) < 1e-9, "room for the inner one counts for the outer one");
});

test("counts, closed bodies and ways agree", () => {
  const { data, root } = made(7);
  const all = new Set(data.bodies.keys());
  const holders = new Holders(data);
  const total = data.bodies.reduce((sum, body) => sum + body.boxes.length, 0);
  assert.equal(boxesDrawn(data, root, all), total);
  assert.equal(boxesDrawn(data, root, new Set()), data.bodies[root].boxes.length);
  assert.deepEqual(closedBodies(data, root, all), []);
  assert.deepEqual(
    closedBodies(data, root, new Set()),
    data.bodies[root].boxes.map((box) => box.body).filter((body) => body >= 0),
  );
  for (const local of data.op.keys()) {
    const way = holders.way(root, local);
    const last = way.length ? way.at(-1) : root;
    const box = data.bodies[last].boxes[holders.box(last, local)];
    assert.deepEqual(box.members, [local]);
    let at = root;
    for (const body of way) {
      assert.ok(data.bodies[at].boxes.some((one) => one.body === body));
      at = body;
    }
  }
  assert.equal(holders.way(root, data.op.length), null);
});

test("small graphs open whole, large ones folded", () => {
  const bodies = [{ boxes: Array(60).fill(null) }, { boxes: Array(61).fill(null) }];
  assert.equal(initialForm({ bodies }, { whole: 0, folded: 1 }), "whole");
  assert.equal(initialForm({ bodies }, { whole: 1, folded: 0 }), "folded");
  assert.equal(initialForm({ bodies }, { whole: 1, folded: -1 }), "whole");
  assert.equal(initialForm({ bodies }, { whole: -1, folded: 1 }), "folded");
});
