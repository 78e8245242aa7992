// The links of the record, both ways: up towards the Python line, down towards the line of a kernel.

/** @import { Index } from "../types.d.ts" */

export class Chain {
  /** @param {Index} index */
  constructor(index) {
    this.upOffsets = Uint32Array.from(index.offsets);
    this.upTargets = Uint32Array.from(index.above);
    const count = index.names.length;
    this.downOffsets = new Uint32Array(count + 1);
    for (const above of this.upTargets) this.downOffsets[above + 1] += 1;
    for (let i = 0; i < count; i++) this.downOffsets[i + 1] += this.downOffsets[i];
    this.downTargets = new Uint32Array(this.upTargets.length);
    /** The walk that came to each item last: a set of numbers is slow where a click lights thousands. */
    this.seen = new Uint32Array(count);
    this.walks = 0;
    const next = this.downOffsets.slice(0, count);
    for (let item = 0; item < count; item++) {
      for (let k = this.upOffsets[item]; k < this.upOffsets[item + 1]; k++) {
        this.downTargets[next[this.upTargets[k]]++] = item;
      }
    }
  }

  /**
   * What an item directly came from.
   * @param {number} item
   * @returns {number[]}
   */
  above(item) {
    return [...this.upTargets.subarray(this.upOffsets[item], this.upOffsets[item + 1])];
  }

  /**
   * What an item directly became.
   * @param {number} item
   * @returns {number[]}
   */
  below(item) {
    return [...this.downTargets.subarray(this.downOffsets[item], this.downOffsets[item + 1])];
  }

  /**
   * Everything that the items came from, nearest first; without themselves.
   * @param {Iterable<number>} items
   */
  ancestors(items) {
    return this.reached(items, this.upOffsets, this.upTargets);
  }

  /**
   * Everything that the items became, nearest first; without themselves.
   * @param {Iterable<number>} items
   */
  descendants(items) {
    return this.reached(items, this.downOffsets, this.downTargets);
  }

  /**
   * The whole chain of some items: what they came from, themselves, and what they became.
   * @param {Iterable<number>} items
   * @returns {Set<number>}
   */
  through(items) {
    const own = [...items];
    return new Set([...this.ancestors(own), ...own, ...this.descendants(own)]);
  }

  /**
   * @param {Iterable<number>} start
   * @param {Uint32Array} offsets
   * @param {Uint32Array} targets
   * @returns {number[]}
   */
  reached(start, offsets, targets) {
    const { seen } = this;
    const walk = ++this.walks;
    /** @type {number[]} */
    const queue = [];
    /** @param {number} item */
    const meet = (item) => {
      if (seen[item] === walk) return;
      seen[item] = walk;
      queue.push(item);
    };
    for (const item of start) meet(item);
    const own = queue.length;
    for (let at = 0; at < queue.length; at++) {
      for (let k = offsets[queue[at]]; k < offsets[queue[at] + 1]; k++) meet(targets[k]);
    }
    return queue.slice(own);
  }
}
