// The shapes of units of work on a box: one fills it and has its tag at a corner, several lie in a band.

import { lookOf } from "../data/units.js";
import { s } from "../dom.js";
import { pixel } from "./shapes.js";

/** @import { Units } from "../data/units.js" */
/** @import { BodyBox } from "../types.d.ts" */

/** Units of a band; the rest is only counted. */
const MOST_UNITS = 8;
const BAND = 15;
const TAG_SIZE = 12;
const CHARACTER = 0.602;

/**
 * The units of a box in order, each with the number of its nodes that came from it.
 * @param {Units} units
 * @param {readonly number[]} items
 * @returns {Map<number, number>}
 */
export function unitsOfBox(units, items) {
  /** @type {Map<number, number>} */
  const counts = new Map();
  for (const item of items) for (const unit of units.of(item)) counts.set(unit, (counts.get(unit) ?? 0) + 1);
  return new Map([...counts].sort(([a], [b]) => a - b));
}

/**
 * True for a box of one unit whose colour comes again.
 * @param {Units} units
 * @param {Map<number, number>} own
 */
export function isDashed(units, own) {
  const [number] = own.keys();
  return own.size === 1 && lookOf(units.all[number]).endsWith(" again");
}

/**
 * The band of a box with several units, where its last line of text stood, or the tag of one with one.
 * @param {Units} units
 * @param {Map<number, number>} own
 * @param {BodyBox} box
 * @param {number} w
 * @param {number} h
 */
export function unitShapes(units, own, box, w, h) {
  if (own.size === 0) return [];
  if (own.size === 1) {
    const [number] = own.keys();
    const { tag } = units.all[number];
    return tag === box.name ? [] : tagShape(tag, w, h);
  }
  const shown = [...own].slice(0, own.size > MOST_UNITS ? MOST_UNITS - 1 : MOST_UNITS);
  const most = Math.max(...shown.map(([, count]) => count));
  const shares = shown.map(([, count]) => Math.max(count, most / 3));
  const rest = own.size - shown.length;
  const room = w - 14 - (rest ? 22 : 0);
  const step = room / shares.reduce((sum, share) => sum + share, 0);
  const y = pixel(hasSlot(box) ? h - BAND - 5 : h - BAND / 2);
  const shapes = [];
  let x = 7;
  shown.forEach(([number], i) => {
    const { tag } = units.all[number];
    const across = shares[i] * step;
    shapes.push(
      s("rect", {
        class: `seg ${lookOf(units.all[number])}`,
        "data-unit": number,
        x: pixel(x),
        y,
        width: pixel(across - 1),
        height: BAND,
      }),
    );
    if (tag.length * CHARACTER * TAG_SIZE + 2 <= across)
      shapes.push(s("text", { class: "seg-tag", x: pixel(x + across / 2), y: pixel(Number(y) + 11.5) }, tag));
    x += across;
  });
  if (rest) shapes.push(s("text", { class: "seg-rest", x: pixel(x + 11), y: pixel(Number(y) + 11.5) }, `+${rest}`));
  return shapes;
}

/**
 * True if the last line of text of a box gives way to the band.
 * @param {BodyBox} box
 */
export function hasSlot(box) {
  return box.lines.at(-1)?.[1] === "small";
}

/**
 * @param {string} tag
 * @param {number} w
 * @param {number} h
 */
function tagShape(tag, w, h) {
  const across = tag.length * CHARACTER * TAG_SIZE + 9;
  const right = w + 6;
  return [
    s("rect", {
      class: "unit-tag",
      x: pixel(right - across),
      y: pixel(h - 4),
      width: pixel(across),
      height: 16,
      rx: 4,
    }),
    s("text", { class: "on-unit-tag", x: pixel(right - across / 2), y: pixel(h + 8.2) }, tag),
  ];
}
