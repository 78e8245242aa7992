// The links of the record, both ways: up towards the Python line, down towards the line of a kernel.

/** @import { Index } from "../types.d.ts" */

/** @type {Record<string, number>} */
const SIDES = { forward: 1, backward: 2 };

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
    this.derived = new Uint8Array(count);
    /** For whose derivative a node of a joint graph is there, in words. @type {Map<number, string>} */
    this.derivatives = new Map(index.derivatives);
    for (const item of this.derivatives.keys()) this.derived[item] = 1;
    /** Items of forwards, and those of backwards. */
    this.sides = new Uint8Array(count);
    for (const { key, start, count: many } of index.stages)
      this.sides.fill(SIDES[key.split(".")[0]] ?? 0, start, start + many);
    /** The kernel that each line of one stands in, and the lines of each kernel. @type {Map<number, number[]>} */
    this.beside = new Map();
    const join = (/** @type {number} */ item, /** @type {number} */ other) =>
      this.beside.get(item)?.push(other) ?? this.beside.set(item, [other]);
    for (const [first, last, ...places] of index.within) {
      for (let line = first; line <= last; line++) {
        for (const place of places) {
          join(line, place);
          join(place, line);
        }
      }
    }
    const next = this.downOffsets.slice(0, count);
    for (let item = 0; item < count; item++) {
      for (let k = this.upOffsets[item]; k < this.upOffsets[item + 1]; k++) {
        this.downTargets[next[this.upTargets[k]]++] = item;
      }
    }
  }

  /**
   * The items that an item directly came from.
   * @param {number} item
   * @returns {number[]}
   */
  above(item) {
    return [...this.upTargets.subarray(this.upOffsets[item], this.upOffsets[item + 1])];
  }

  /**
   * The items that an item directly became.
   * @param {number} item
   * @returns {number[]}
   */
  below(item) {
    return [...this.downTargets.subarray(this.downOffsets[item], this.downOffsets[item + 1])];
  }

  /**
   * Everything that the items came from, nearest first, then what lines stand in; without themselves.
   * @param {Iterable<number>} items
   */
  ancestors(items) {
    return this.reached(items, this.upOffsets, this.upTargets);
  }

  /**
   * Everything that the items became, nearest first, then lines that stand in them; without themselves.
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
   * The same without what is only needed by a derivative of theirs; the whole where that is all.
   * @param {Iterable<number>} items
   */
  own(items) {
    const through = this.through(items);
    const own = [...items];
    for (const item of this.needed(own, this.ancestors(own), this.descendants(own))) through.delete(item);
    return through;
  }

  /**
   * The items that stand in the chain of some others for a derivative alone: of the joint graph and of the forward what only the
   * derivative of the items needs, and above a part of the forward the forward ops of this gradient. Nothing of a
   * backward, where all is there for one. The same as `derivatives=False` of the chain in Python.
   * @param {number[]} items
   * @param {number[]} up their ancestors
   * @param {number[]} down their descendants
   * @returns {Set<number>}
   */
  needed(items, up, down) {
    /** @type {Set<number>} */
    const marked = new Set();
    const { derived, sides } = this;
    if (this.derivatives.size === 0) return marked;
    const isDerived = (/** @type {number} */ item) => derived[item] === 1;
    if (items.some(isDerived) || down.some(isDerived)) {
      const plain = items.filter((item) => !isDerived(item));
      const own = new Set(this.reached(plain, this.downOffsets, this.downTargets, derived));
      for (const item of down) if (!own.has(item) && sides[item] !== SIDES.backward) marked.add(item);
    }
    const forward = items.filter((item) => sides[item] === SIDES.forward);
    if (forward.length && up.some(isDerived)) {
      const rest = items.filter((item) => sides[item] !== SIDES.forward);
      const own = new Set(this.reached(forward, this.upOffsets, this.upTargets, derived));
      for (const item of this.ancestors(rest)) own.add(item);
      for (const item of up) if (!own.has(item)) marked.add(item);
    }
    return marked;
  }

  /** True if a node that autograd made is, or is one with, something of a forward. @param {number} item */
  servesForward(item) {
    return this.derived[item] === 1 && this.below(item).some((below) => this.sides[below] === SIDES.forward);
  }

  /**
   * @param {Iterable<number>} start
   * @param {Uint32Array} offsets
   * @param {Uint32Array} targets
   * @param {Uint8Array | null} [without] 1 for what is not gone to
   * @returns {number[]}
   */
  reached(start, offsets, targets, without = null) {
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
      for (let k = offsets[queue[at]]; k < offsets[queue[at] + 1]; k++) {
        if (without === null || without[targets[k]] === 0) meet(targets[k]);
      }
    }
    // Not gone on from: of all that a loop came from, one line of it did not.
    for (const item of queue.slice(0, own)) {
      for (const other of this.beside.get(item) ?? []) if (other < item === (offsets === this.upOffsets)) meet(other);
    }
    return queue.slice(own);
  }
}
