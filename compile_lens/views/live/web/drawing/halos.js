// One ground for each kernel, under the nodes that it computes, with a sentence where there is room for one.

import { plural, s } from "../dom.js";
import { AROUND, ofEdges, room, SIZE, STEP } from "./halo_labels.js";
import { pixel } from "./shapes.js";

/** @import { App } from "../data/app.d.ts" */
/** @import { Rectangle } from "./curves.js" */
/** @import { BoxView, LevelView } from "./views.js" */

/** Drawings of more boxes have none, and neither have stages of more nodes: each kernel is followed up to them. */
const MOST_BOXES = 300;
const MOST_NODES = 3000;
/** Pixels of width of what joins two nodes. */
const BRIDGE = 24;
const ROUND = 16;
/** Kinds of nodes that do no work. */
const IDLE = new Set(["input", "output", "constant", "view", "allocation", "symbol", "nop"]);
/** The nodes among them that are in no kernel. */
const ENDS = new Set(["input", "output", "constant", "symbol"]);

/** The kernel that computes each node of a stage, and what became of them in words. */
export class Halos {
  /**
   * @param {App} app
   * @param {number} stage
   */
  constructor(app, stage) {
    this.app = app;
    this.stage = stage;
    /** The kernel of each node (by local number) that only one computes. @type {Map<number, number>} */
    this.kernelOf = new Map();
    /** @type {Map<number, string[]>} */
    this.words = new Map();
    this.read();
  }

  read() {
    const { model, chain } = this.app;
    const { stages } = model.index;
    const { compilation, key, start, count } = stages[this.stage];
    const phase = model.phase(this.stage);
    const code = model.stage(compilation, `${phase}.code`);
    if (count > MOST_NODES) return;
    if (code < 0 || !["", ".post_grad", ".loops"].includes(key.slice(phase.length))) return;
    /** @param {string} name @param {number[]} items */
    const within = (name, items) => {
      const number = model.stage(compilation, `${phase}.${name}`);
      if (number < 0) return -1;
      const { start: first, count: many } = stages[number];
      return items.filter((item) => item >= first && item < first + many && !IDLE.has(model.kind(item))).length;
    };
    /** @type {Map<number, number>} */
    const times = new Map();
    for (let kernel = stages[code].start; kernel < stages[code].start + stages[code].kernels; kernel++) {
      const above = chain.ancestors([kernel]);
      const own = above.filter((item) => item >= start && item < start + count && !ENDS.has(model.kind(item)));
      const working = own.filter((item) => !IDLE.has(model.kind(item))).length;
      for (const item of own) {
        times.set(item, (times.get(item) ?? 0) + 1);
        this.kernelOf.set(item - start, kernel);
      }
      this.words.set(kernel, sentence(working, key, within("loops", above), within("groups", above)));
    }
    // What is computed again by another kernel belongs to none of them alone.
    for (const [item, count] of times) if (count > 1) this.kernelOf.delete(item - start);
  }

  /**
   * The kernel that computes all nodes of a box; -1 for none.
   * @param {BoxView} view
   */
  of(view) {
    const { members } = view.box;
    const kernel = this.kernelOf.get(members[0]) ?? -1;
    return members.every((local) => this.kernelOf.get(local) === kernel) ? kernel : -1;
  }

  /**
   * Draws the grounds of a level, once its boxes and edges have their places.
   * @param {LevelView} level
   * @param {number} width of the drawing
   */
  draw(level, width) {
    level.halos.replaceChildren();
    if (this.kernelOf.size === 0 || level.boxes.length > MOST_BOXES) return;
    /** @type {Map<number, BoxView[]>} */
    const kernels = new Map();
    for (const view of level.boxes) {
      const kernel = view.inside ? -1 : this.of(view);
      if (kernel >= 0) kernels.set(kernel, [...(kernels.get(kernel) ?? []), view]);
    }
    /** @param {BoxView} view @returns {Rectangle} */
    const at = ({ at: [x, y, w, h] }) => [x - level.x, y - level.y, w, h];
    if ([...kernels.values()].every((views) => views.length < 2)) return;
    const taken = [...level.boxes.map(at), ...level.stubs.map((stub) => stub.at), ...ofEdges(level)];
    for (const [kernel, views] of kernels) {
      if (views.length < 2) continue;
      const own = new Set(views);
      const ground = s(
        "g",
        { class: "halo-ground" },
        views.map(at).map(([x, y, w, h]) =>
          s("rect", {
            x: pixel(x - AROUND),
            y: pixel(y - AROUND),
            width: pixel(w + 2 * AROUND),
            height: pixel(h + 2 * AROUND),
            rx: ROUND,
          }),
        ),
        level.edges
          .filter(({ source, target }) => own.has(source) && own.has(target))
          .map(({ points }) => s("path", { d: way(points), "stroke-width": BRIDGE })),
      );
      const lines = this.words.get(kernel) ?? [];
      const place = room(lines, views.map(at), taken, width);
      const texts = place
        ? lines.map((text, i) =>
            s(
              "text",
              { x: pixel(place[0]), y: pixel(place[1] + SIZE + i * STEP), class: i ? "halo-why" : "halo-what" },
              text,
            ),
          )
        : [];
      if (place) taken.push([place[0], place[1], place[2], place[3]]);
      level.halos.append(
        s("g", { class: "halo", "data-kernel": kernel }, s("title", {}, lines.join(": ")), ground, texts),
      );
    }
  }
}

/**
 * `5 ops, 1 kernel`, `inlined into 1 loop`.
 * @param {number} nodes
 * @param {string} key of their stage
 * @param {number} loops -1 where they were not seen
 * @param {number} groups
 */
function sentence(nodes, key, loops, groups) {
  const lines = [`${plural(nodes, key.endsWith(".loops") ? "loop" : "op")}, 1 kernel`];
  if (groups > 1) lines.push(`${groups} groups in one function`);
  else if (loops > 1) lines.push(`${loops} loops fused into 1`);
  else if (loops === 1 && nodes > 1) lines.push("inlined into 1 loop");
  return lines;
}

/**
 * A chain of curves without an arrowhead.
 * @param {number[]} points
 */
function way(points) {
  const rest = [];
  for (let i = 2; i < points.length; i += 2) rest.push(`${pixel(points[i])} ${pixel(points[i + 1])}`);
  return `M${pixel(points[0])} ${pixel(points[1])}C${rest.join(" ")}`;
}
