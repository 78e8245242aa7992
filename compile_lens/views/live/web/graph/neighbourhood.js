// The nodes a few steps before and after a node of a drawing.

import { grouped, plural, shortened } from "../dom.js";

/** @import { BodyBox, GraphData, Scene } from "../types.d.ts" */

/** The most steps that can be asked for. */
export const MOST_STEPS = 3;

/**
 * Who takes whose values in one scene. A box that holds several nodes and cannot be opened counts as one, since
 * nothing is known of its inside.
 */
export class Neighbourhood {
  /**
   * @param {Pick<GraphData, "bodies" | "layouts" | "op">} data
   * @param {Scene} scene
   */
  constructor(data, scene) {
    this.data = data;
    /** The unit that a node is, or is in; -1 for those of other scenes. */
    this.unitOf = new Int32Array(data.op.length).fill(-1);
    /** The nodes of each unit. @type {number[][]} */
    this.units = [];
    /** @type {Set<number>[]} */
    this.before = [];
    /** @type {Set<number>[]} */
    this.after = [];
    const root = scene.whole >= 0 ? scene.whole : scene.folded;
    if (root < 0) return;
    /** @type {{ body: number, units: number[] }[]} */
    const bodies = [];
    /** Units by the names of their boxes. @type {Map<string, number>} */
    const named = new Map();
    const visit = (/** @type {number} */ body) => {
      const units = data.bodies[body].boxes.map((box) => {
        if (box.body >= 0) return -1;
        const unit = this.units.push(box.members) - 1;
        for (const local of box.members) this.unitOf[local] = unit;
        named.set(box.name, unit);
        return unit;
      });
      bodies.push({ body, units });
      for (const box of data.bodies[body].boxes) if (box.body >= 0) visit(box.body);
    };
    visit(root);
    this.before = this.units.map(() => new Set());
    this.after = this.units.map(() => new Set());
    // An edge of a box that can be opened is not looked at: its inside names the nodes at both ends.
    for (const { body, units } of bodies) {
      const { layout, stubs } = data.bodies[body];
      for (const { ends } of data.layouts[layout].edges) this.join(units[ends[0]], units[ends[1]]);
      data.layouts[layout].stubs.forEach(({ box, outgoing }, i) => {
        for (const other of stubs[i].others) {
          const far = named.get(other) ?? -1;
          if (outgoing) this.join(units[box], far);
          else this.join(far, units[box]);
        }
      });
    }
  }

  /**
   * @param {number} source
   * @param {number} target
   */
  join(source, target) {
    if (source < 0 || target < 0 || source === target) return;
    this.after[source].add(target);
    this.before[target].add(source);
  }

  /**
   * The nodes at most so many steps upstream or downstream of some nodes, with these.
   * @param {number[]} locals
   * @param {number} steps
   * @returns {{ nodes: Set<number>, upstream: number, downstream: number, vague: number }} numbers of nodes above
   *   and below, and of boxes that count as one
   */
  around(locals, steps) {
    const own = new Set(locals.map((local) => this.unitOf[local]).filter((unit) => unit >= 0));
    const up = walked(own, this.before, steps);
    const down = walked(own, this.after, steps);
    const all = new Set([...own, ...up, ...down]);
    const nodes = new Set(locals);
    for (const unit of all) for (const local of this.units[unit]) nodes.add(local);
    const sum = (/** @type {Set<number>} */ units) =>
      [...units].reduce((total, unit) => total + this.units[unit].length, 0);
    const vague = [...all].filter((unit) => this.units[unit].length > 1).length;
    return { nodes, upstream: sum(up), downstream: sum(down), vague };
  }
}

/**
 * @param {Set<number>} start
 * @param {Set<number>[]} links
 * @param {number} steps
 * @returns {Set<number>} without the start
 */
function walked(start, links, steps) {
  const seen = new Set(start);
  let edge = [...start];
  for (let step = 0; step < steps; step++) {
    const next = [];
    for (const unit of edge) {
      for (const other of links[unit]) {
        if (seen.has(other)) continue;
        seen.add(other);
        next.push(other);
      }
    }
    edge = next;
  }
  for (const unit of start) seen.delete(unit);
  return seen;
}

/**
 * The nodes that are shown, and those that are not.
 * @param {string} name
 * @param {number} steps
 * @param {{ nodes: Set<number>, upstream: number, downstream: number, vague: number }} around
 * @param {number} total nodes of the drawing
 * @param {number} boxes closed boxes that hold some of the nodes shown and others
 */
export function neighbourhoodWords(name, steps, around, total, boxes) {
  const rest = total - around.nodes.size;
  const parts = [
    `${shortened(name, 60)} and ${plural(steps, "step")} around it: ${grouped(around.upstream)} upstream, ${grouped(around.downstream)} downstream`,
    rest > 0 ? `${plural(rest, "other node")} dimmed` : "nothing is left out",
  ];
  if (boxes > 0)
    parts.push(
      `${plural(boxes, "closed box", "closed boxes")} among them ${boxes === 1 ? "holds" : "hold"} other nodes too`,
    );
  if (around.vague > 0)
    parts.push(
      `${plural(around.vague, "box", "boxes")} that cannot be opened ${around.vague === 1 ? "counts" : "count"} as one step`,
    );
  return parts.join("; ");
}
