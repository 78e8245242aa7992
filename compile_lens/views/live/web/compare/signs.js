// What of a graph the other capture has not, or has otherwise: a sign on its boxes, and how many there are.

import { h, plural } from "../dom.js";
import { tagShapes } from "../drawing/shapes.js";
import { GraphWords } from "../drawing/labels.js";

/** @import { BodyBox, GraphData } from "../types.d.ts" */

/** Nodes by item: how the other has them; "" for those that it has not. @typedef {ReadonlyMap<number, string>} Signs */

export class SignedWords extends GraphWords {
  /**
   * @param {GraphData} data
   * @param {string[]} names
   * @param {string} saved
   * @param {number} start the item that node 0 is
   * @param {Signs} signs
   * @param {string} other what the other capture is called
   */
  constructor(data, names, saved, start, signs, other) {
    super(data, names, saved);
    this.begin = start;
    this.unlike = signs;
    this.rival = other;
  }

  /**
   * What is said of a box that bears the sign; "" for all others.
   * @param {BodyBox} box
   */
  sign({ members, body }) {
    const own = members.flatMap((local) => this.unlike.get(this.begin + local) ?? []);
    if (own.length === 0) return "";
    if (members.length > 1 || body >= 0) return `≠ ${own.length} of its nodes differ from ${this.rival}`;
    return own[0] ? `≠ ${own[0]}` : `≠ only here, not in ${this.rival}`;
  }

  /** @override @param {BodyBox} box */
  label(box) {
    return [super.label(box), this.sign(box)].filter(Boolean).join(", ");
  }

  /** @override @param {BodyBox} box */
  tip(box) {
    const [name, ...rest] = super.tip(box).split("\n");
    return [name, this.sign(box), ...rest].filter(Boolean).join("\n");
  }

  /**
   * @override
   * @param {BodyBox} box
   * @param {number} height
   */
  signs(box, height) {
    return this.sign(box) ? tagShapes("unequal", "≠", 10, height - 4) : [];
  }
}

/**
 * The nodes of a stage that the other capture has not.
 * @param {Signs} signs
 * @param {number} start the stage's first item
 * @param {number} count
 */
export function onlyHere(signs, start, count) {
  return [...signs].flatMap(([item, words]) => (words === "" && item >= start && item < start + count ? [item] : []));
}

/**
 * Says in the head of a graph how many nodes it alone has.
 * @param {HTMLElement} head
 * @param {number} count
 */
export function tellOnly(head, count) {
  if (count === 0) return;
  head.title = `${plural(count, "node")} that the other graph has not: go to the next`;
  head.append(" ", h("span", { class: "top-chip compare-lacked" }, `≠ ${count}`, h("span", {}, " only here")));
}
