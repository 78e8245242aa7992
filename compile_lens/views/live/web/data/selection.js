// The hovered and the pinned items, and the items that light up for them.

/** @import { Marks, Pin } from "./app.d.ts" */
/** @import { Chain } from "./chain.js" */

/** Colours of pins. */
export const COLOURS = 6;
/** Bit of a mark: in the chain of what the pointer or the focus is on. */
export const HOVER = 1 << COLOURS;
/** Bit of a mark: pinned or hovered itself. */
export const SELF = 1 << (COLOURS + 1);

/** Bit of a mark: not there for a derivative alone, of all that is pinned and hovered. */
export const OWN = 1 << (COLOURS + 2);

/** True if something is lit for a derivative alone. @param {number} mark */
export function isNeeded(mark) {
  return mark !== 0 && (mark & OWN) === 0;
}

export class Selection {
  /**
   * @param {Chain} chain
   * @param {(items: readonly number[]) => number[]} [unitsOf] numbers of the units that items came from
   */
  constructor(chain, unitsOf = () => []) {
    this.chain = chain;
    this.unitsOf = unitsOf;
    /** The units of what is pinned and hovered, which keep their colours; null while nothing is. @type {Set<number> | null} */
    this.units = null;
    /** @type {Pin[]} */
    this.pins = [];
    /** Items under the pointer or the focus; empty for none. @type {number[]} */
    this.hovered = [];
    this.hoveredName = "";
    /** The part of the page that the pointer or the focus is in, if it said so. @type {Element | null} */
    this.by = null;
    /** @type {Marks} */
    this.marks = new Map();
    /** @type {Set<(what: "hover" | "pins") => void>} */
    this.listeners = new Set();
  }

  /**
   * Calls back after each change. Returns the way to stop that.
   * @param {(what: "hover" | "pins") => void} listener
   */
  subscribe(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /**
   * Lights the chain of some items until the next call; none to end it.
   * @param {number[]} items
   * @param {string} [name]
   * @param {Element | null} [by] the part of the page that asks
   */
  preview(items, name = "", by = null) {
    this.by = by;
    if (same(items, this.hovered)) return;
    this.hovered = items;
    this.hoveredName = name;
    this.changed("hover");
  }

  /**
   * The focus went out of something. What the pointer lights elsewhere by now stays lit: a click there begins with this,
   * and need not draw the page once more without its chain.
   * @param {FocusEvent} event
   * @param {Element} by the part of the page
   */
  left({ relatedTarget }, by) {
    if (this.by === by && !(relatedTarget instanceof Node && by.contains(relatedTarget))) this.preview([]);
  }

  /**
   * Pins items, or takes their pin out if they are pinned.
   * @param {number[]} items
   * @param {string} name
   */
  toggle(items, name) {
    if (items.length === 0) return;
    const known = this.pins.findIndex((pin) => same(pin.items, items));
    if (known >= 0) {
      this.pins.splice(known, 1);
    } else {
      this.pins.push({ items, name, colour: this.freeColour() });
      if (this.pins.length > COLOURS) this.pins.shift();
    }
    this.changed("pins");
  }

  /** True if exactly these items are pinned. @param {number[]} items */
  isPinned(items) {
    return this.pins.some((pin) => same(pin.items, items));
  }

  /**
   * Sets all pins at once, in order.
   * @param {{ items: number[], name: string }[]} pins
   */
  replace(pins) {
    this.pins = pins.slice(0, COLOURS).map((pin, colour) => ({ ...pin, colour }));
    this.changed("pins");
  }

  /** Takes out every pin and ends the preview. */
  clear() {
    this.pins = [];
    this.hovered = [];
    this.hoveredName = "";
    this.changed("pins");
  }

  freeColour() {
    const used = new Set(this.pins.map((pin) => pin.colour));
    for (let colour = 0; colour < COLOURS; colour++) if (!used.has(colour)) return colour;
    // The oldest pin gives way, and its colour goes to the new one.
    return this.pins[0].colour;
  }

  /** @param {"hover" | "pins"} what */
  changed(what) {
    const marks = new Map();
    // Who clicks points at it: the chain of both is walked once.
    const pinned = this.hovered.length ? this.pins.find((pin) => same(pin.items, this.hovered)) : undefined;
    if (this.hovered.length && !pinned) add(marks, this.chain, this.hovered, HOVER);
    for (const pin of this.pins) add(marks, this.chain, pin.items, (1 << pin.colour) | (pin === pinned ? HOVER : 0));
    this.marks = marks;
    const chosen = [...this.pins.map((pin) => pin.items), this.hovered].filter((items) => items.length);
    this.units = chosen.length ? new Set(chosen.flatMap((items) => this.unitsOf(items))) : null;
    for (const listener of [...this.listeners]) listener(what);
  }
}

/**
 * The pin colours in a mark, in order.
 * @param {number} mark
 * @returns {number[]}
 */
export function coloursOf(mark) {
  const colours = [];
  for (let colour = 0; colour < COLOURS; colour++) if (mark & (1 << colour)) colours.push(colour);
  return colours;
}

/**
 * @param {Marks} marks
 * @param {Chain} chain
 * @param {number[]} items
 * @param {number} bit
 */
function add(marks, chain, items, bit) {
  const up = chain.ancestors(items);
  const down = chain.descendants(items);
  const needed = chain.needed(items, up, down);
  for (const group of [up, items, down]) {
    for (const item of group) marks.set(item, (marks.get(item) ?? 0) | bit | (needed.has(item) ? 0 : OWN));
  }
  for (const item of items) marks.set(item, (marks.get(item) ?? 0) | SELF);
}

/**
 * @param {number[]} one
 * @param {number[]} other
 */
function same(one, other) {
  return one.length === other.length && one.every((item, i) => item === other[i]);
}
