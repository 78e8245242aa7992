// The items of the lines of a listing, and the lines that light up for a mark. No DOM.

/** @import { Marks } from "../data/app.d.ts" */

/**
 * Lines that belong to an item as a whole, such as the source of a kernel; counted from 1. With `whole`, a line
 * of it without an item of its own stands for that item.
 * @typedef {{ first: number, last: number, item: number, whole: boolean }} LineRange
 */

export class LineLinks {
  /**
   * @param {number} count of lines
   * @param {Map<number, number[]>} items of each line, counted from 1
   * @param {LineRange[]} ranges
   */
  constructor(count, items, ranges) {
    this.items = items;
    this.ranges = ranges;
    /** @type {number[]} */
    const pairs = [];
    let low = Infinity;
    let high = -1;
    for (const [line, own] of items) {
      if (line < 1 || line > count) continue;
      for (const item of own) {
        if (item < low) low = item;
        if (item > high) high = item;
        pairs.push(item, line - 1);
      }
    }
    // Items of one stage are neighbours, so a table from the lowest to the highest is small and quick.
    this.low = high < 0 ? 0 : low;
    this.offsets = new Uint32Array(high < 0 ? 1 : high - low + 2);
    this.lines = new Uint32Array(pairs.length / 2);
    this.fillTable(pairs);
    /** The mark of each line, from line 0. */
    this.bits = new Uint16Array(count);
    this.spare = new Uint16Array(count);
    /** Lines with a mark. @type {number[]} */
    this.lit = [];
    /** The mark of each range. */
    this.rangeBits = new Uint16Array(ranges.length);
  }

  /** @param {number[]} pairs item, line, item, line, … */
  fillTable(pairs) {
    const { offsets, low, lines } = this;
    for (let i = 0; i < pairs.length; i += 2) offsets[pairs[i] - low + 1] += 1;
    for (let i = 1; i < offsets.length; i++) offsets[i] += offsets[i - 1];
    const next = offsets.slice();
    for (let i = 0; i < pairs.length; i += 2) lines[next[pairs[i] - low]++] = pairs[i + 1];
  }

  /**
   * Items that a line (from 0) stands for.
   * @param {number} line
   * @returns {number[]}
   */
  itemsOf(line) {
    const own = this.items.get(line + 1);
    if (own) return own;
    const around = this.ranges.filter((r) => r.whole && r.first <= line + 1 && line + 1 <= r.last);
    return around.map((range) => range.item);
  }

  /**
   * The lines (from 0) of an item; for the item of a range its first one. Empty if it has none here.
   * @param {number} item
   * @returns {number[]}
   */
  linesOf(item) {
    const slot = item - this.low;
    if (slot >= 0 && slot + 1 < this.offsets.length && this.offsets[slot] < this.offsets[slot + 1]) {
      return [...this.lines.subarray(this.offsets[slot], this.offsets[slot + 1])];
    }
    return this.ranges.filter((range) => range.item === item).map((range) => range.first - 1);
  }

  /**
   * Takes over new marks. Returns the lines whose mark changed.
   * @param {Marks} marks
   * @returns {number[]}
   */
  light(marks) {
    const old = this.bits;
    const bits = this.spare;
    /** @type {number[]} */
    const lit = [];
    const { low, offsets, lines } = this;
    const slots = offsets.length - 1;
    /** @type {(slot: number, mark: number) => void} */
    const set = (slot, mark) => {
      for (let k = offsets[slot]; k < offsets[slot + 1]; k++) {
        if (bits[lines[k]] === 0) lit.push(lines[k]);
        bits[lines[k]] |= mark;
      }
    };
    if (marks.size < slots) {
      for (const [item, mark] of marks) if (item >= low && item < low + slots) set(item - low, mark);
    } else {
      for (let slot = 0; slot < slots; slot++) {
        const mark = marks.get(slot + low);
        if (mark) set(slot, mark);
      }
    }
    const changed = this.lit.filter((line) => bits[line] !== old[line]);
    for (const line of lit) if (old[line] === 0) changed.push(line);
    for (const line of this.lit) old[line] = 0;
    this.bits = bits;
    this.spare = old;
    this.lit = lit;
    for (let i = 0; i < this.ranges.length; i++) this.rangeBits[i] = marks.get(this.ranges[i].item) ?? 0;
    return changed;
  }
}
