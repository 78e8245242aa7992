// The words of a drawing: labels for screen readers, and tooltips.

import { grouped, plural, shortened } from "../dom.js";
import { heldWords } from "./views.js";

/** @import { BodyBox, GraphData, TensorFacts } from "../types.d.ts" */

/** So many names are listed in a tooltip; then how many more. */
const TIP_NAMES = 12;
/** So many characters of a line of a tooltip are shown. */
const TIP_COLUMNS = 240;
const TIP_LINES = 16;

export class GraphWords {
  /**
   * @param {GraphData} data
   * @param {string[]} names of the nodes
   * @param {string} saved what is said of a node that the backward needs
   */
  constructor(data, names, saved) {
    this.data = data;
    this.saved = saved;
    this.names = names;
    this.kept = new Set(data.saved);
    this.details = new Map(data.detail);
    this.moved = new Map(data.traffic.map(([local, read, written]) => [local, [read, written]]));
  }

  /**
   * The number of a box's nodes that are saved for backward.
   * @param {BodyBox} box
   */
  savedIn(box) {
    if (this.kept.size === 0) return 0;
    let count = 0;
    for (const local of box.members) if (this.kept.has(local)) count += 1;
    return count;
  }

  /**
   * A box in one line: `sin, aten.sin.default, float32[1000], saved for backward`.
   * @param {BodyBox} box
   */
  label(box) {
    if (isPlain(box)) {
      const local = box.members[0];
      const parts = [
        box.name,
        this.operation(local),
        ...this.data.outputs[local].slice(0, 4).map((i) => tensorWord(this.data.tensors[i])),
      ];
      if (this.kept.has(local)) parts.push(this.saved);
      return [...new Set(parts)]
        .filter(Boolean)
        .map((part) => shortened(part, TIP_COLUMNS))
        .join(", ");
    }
    const saved = this.savedIn(box);
    const parts = [shortened(box.name, TIP_COLUMNS), `holds ${heldWords(box)}`];
    if (partOf(box)) parts.push(partOf(box));
    if (saved) parts.push(`${saved} ${this.saved}`);
    return parts.join(", ");
  }

  /**
   * Everything about a box that does not fit into it, a line each.
   * @param {BodyBox} box
   */
  tip(box) {
    const lines = isPlain(box) ? this.nodeTip(box) : this.groupTip(box);
    return lines
      .slice(0, TIP_LINES)
      .map((line) => shortened(line, TIP_COLUMNS))
      .join("\n");
  }

  /**
   * Further shapes on a box.
   * @param {BodyBox} box
   * @param {number} height
   * @returns {SVGElement[]}
   */
  signs(box, height) {
    return [];
  }

  /** @param {BodyBox} box */
  nodeTip(box) {
    const { strings, outputs, tensors, module, moduleType, frames } = this.data;
    const local = box.members[0];
    const lines = [box.name, [strings[this.data.op[local]], this.operation(local)].filter(Boolean).join(" ")];
    for (const number of outputs[local].slice(0, 4)) {
      const { stride, device } = tensors[number];
      lines.push([tensorWord(tensors[number]), stride && `stride ${stride}`, device].filter(Boolean).join(" "));
    }
    if (outputs[local].length > 4)
      lines.push(`and ${plural(outputs[local].length - 4, "more tensor", "more tensors")}`);
    const type = strings[moduleType[local]];
    if (strings[module[local]]) lines.push(`module ${strings[module[local]]}${type ? ` (${type})` : ""}`);
    const frame = frames[local]?.at(-1);
    if (frame !== undefined) lines.push(strings[frame]);
    const [read, written] = this.moved.get(local) ?? [-1, -1];
    if (read >= 0 && written >= 0) lines.push(`reads ~${grouped(read)} B, writes ~${grouped(written)} B (modelled)`);
    const detail = this.details.get(local);
    if (detail) lines.push(...detail.split("\n").slice(0, 6));
    if (this.kept.has(local)) lines.push(this.saved);
    return lines.filter(Boolean);
  }

  /** @param {BodyBox} box */
  groupTip(box) {
    const names = box.members.slice(0, TIP_NAMES).map((local) => shortened(this.names[local], 40));
    const more = box.members.length - names.length;
    const lines = [
      box.name,
      `holds ${plural(box.members.length, "node")}: ${names.join(", ")}${more > 0 ? ` and ${grouped(more)} more` : ""}`,
    ];
    if (partOf(box)) lines.push(partOf(box));
    const saved = this.savedIn(box);
    if (saved) lines.push(`${saved} of them ${this.saved}`);
    lines.push(box.body >= 0 ? "double-click to open" : "its inside is not drawn");
    return lines;
  }

  /**
   * The place that a stub leads to.
   * @param {string[]} others
   * @param {boolean} outgoing
   */
  stub(others, outgoing) {
    const names = others.slice(0, TIP_NAMES).map((name) => shortened(name, 80));
    const more = others.length - names.length;
    return `${outgoing ? "to" : "from"} ${names.join(", ")}${more > 0 ? ` and ${grouped(more)} more` : ""}`;
  }

  /** @param {number} local */
  operation(local) {
    const { strings, target, op } = this.data;
    return strings[target[local]] || strings[op[local]] || "";
  }
}

/**
 * True if a box is a node, not a group.
 * @param {BodyBox} box
 */
export function isPlain(box) {
  return box.members.length === 1 && box.body < 0;
}

/**
 * The meaning of the number of a box that is a later part of a module: `attention (2)`; "" of all others.
 * @param {BodyBox} box
 */
function partOf({ name }) {
  const [, module, number] = /^(.*) \((\d+)\)$/.exec(name) ?? [];
  return number ? `part ${number} of ${shortened(module, 80)}: nodes of other modules stand between its parts` : "";
}

/**
 * `float32[8, 16]`.
 * @param {TensorFacts} tensor
 */
export function tensorWord({ dtype, shape }) {
  return /^[[(]/.test(shape) || shape === "" ? `${dtype}${shape}` : `${dtype}[${shape}]`;
}
