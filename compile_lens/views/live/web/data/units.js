// Units of work, each with a colour: Python lines, or the calls in one, and the items that came from them.

/** @import { Index, Unit } from "../types.d.ts" */

/**
 * A run of characters of a line and the unit that it belongs to, by number.
 * @typedef {{ start: number, end: number, unit: number }} Segment
 */

/** Colours of units; as many again have broken edges. */
export const FILLS = 6;

/**
 * The classes of a unit's look.
 * @param {Pick<Unit, "colour">} unit
 */
export function lookOf({ colour }) {
  return `unit-${colour % FILLS}${colour < FILLS ? "" : " again"}`;
}

/** The meaning of the look of a colour that comes again. */
export const AGAIN = "dashed border: another line or call of the same colour";

/**
 * The call that some items are; undefined where they are none.
 * @param {readonly Unit[]} units
 * @param {readonly number[]} items
 */
export function callOf(units, items) {
  return units.find((unit) => unit.end >= 0 && unit.items.join() === items.join());
}

export class Units {
  /** @param {Pick<Index, "units" | "unitSets" | "unitsOf">} index */
  constructor({ units, unitSets, unitsOf }) {
    this.all = units;
    this.sets = unitSets;
    this.ofItems = unitsOf;
    /** @type {Map<number, number[]>} */
    this.byLine = new Map();
    units.forEach(({ line }, number) => this.byLine.set(line, [...(this.byLine.get(line) ?? []), number]));
  }

  /**
   * Numbers of the units that an item came from; of a Python line those in it.
   * @param {number} item
   * @param {number} [compilation] of which a Python line's are wanted; without, of all
   * @returns {number[]}
   */
  of(item, compilation) {
    const inLine = this.byLine.get(item);
    if (!inLine) return this.sets[this.ofItems[item]] ?? [];
    return compilation === undefined ? inLine : inLine.filter((unit) => this.all[unit].compilation === compilation);
  }

  /**
   * The units of several items, in order, each once.
   * @param {readonly number[]} items
   * @param {number} [compilation]
   */
  ofAll(items, compilation) {
    if (items.length === 1) return this.of(items[0], compilation);
    const units = new Set(items.flatMap((item) => this.of(item, compilation)));
    return [...units].sort((a, b) => a - b);
  }

  /**
   * A line cut so that each character belongs to its innermost call.
   * @param {readonly number[]} units by number
   * @returns {Segment[]} what no call holds is left out
   */
  segments(units) {
    const calls = units.filter((unit) => this.all[unit].end >= 0);
    const width = Math.max(0, ...calls.map((unit) => this.all[unit].end));
    const owner = new Int32Array(width).fill(-1);
    const length = (/** @type {number} */ unit) => this.all[unit].end - this.all[unit].column;
    // The longest first: what is inside comes after it.
    for (const unit of [...calls].sort((a, b) => length(b) - length(a)))
      owner.fill(unit, this.all[unit].column, this.all[unit].end);
    /** @type {Segment[]} */
    const segments = [];
    for (let at = 0; at < width; at++) {
      const last = segments[segments.length - 1];
      if (last?.unit === owner[at] && last.end === at) last.end = at + 1;
      else if (owner[at] >= 0) segments.push({ start: at, end: at + 1, unit: owner[at] });
    }
    return segments;
  }

  /**
   * The places of the names of calls below their line: each under the longest part that is its own alone, none over
   * another.
   * @param {Segment[]} segments
   * @param {number} scale characters of a name that are as wide as one of the line
   * @returns {{ unit: number, at: number }[]} `at` in characters of the line
   */
  places(segments, scale) {
    /** @type {Map<number, Segment>} */
    const longest = new Map();
    for (const one of segments) {
      const known = longest.get(one.unit);
      if (!known || known.end - known.start < one.end - one.start) longest.set(one.unit, one);
    }
    let free = 0;
    return [...longest.values()]
      .sort((a, b) => a.start - b.start)
      .map(({ start, end, unit }) => {
        const width = this.all[unit].tag.length * scale;
        const at = Math.max(free, (start + end - width) / 2);
        free = at + width + 0.6;
        return { unit, at };
      });
  }
}
