// The look of units of work in a listing: the ground and the bar of a row, the tags behind it, the calls in it.

import { FILLS, lookOf } from "../data/units.js";
import { h } from "../dom.js";

/** @import { Units } from "../data/units.js" */
/** @import { LinePiece } from "./lines.js" */
/** @import { Segment } from "../data/units.js" */

/** Tags of a row; the rest is only counted. */
const MOST_TAGS = 4;

/** Pixels from the start of a row in which the grounds of all its units are. */
const ROW_FILLS = 320;

/** Width of a character of a tag under a line, relative to one of the line. */
export const TAG_SCALE = 0.82;

/**
 * Ground and bar of a row, as values of CSS; a unit that is not lit has no ground and a grey bar.
 * @param {Units} units
 * @param {readonly number[]} own by number
 * @param {ReadonlySet<number> | null} lit null for all
 */
export function rowColours(units, own, lit) {
  const shown = lit ? own.filter((unit) => lit.has(unit)) : own;
  const colour = (/** @type {number} */ unit) => units.all[unit].colour % FILLS;
  const fills = shown.map((unit) => `var(--unit-${colour(unit)}-row)`);
  // All of them within what any pane shows of a row, however long it is.
  const stops = fills.map((fill, i) => `${fill} ${Math.round(ROW_FILLS * ((i + 0.5) / fills.length))}px`);
  const ground = fills.length === 0 ? "none" : `linear-gradient(90deg,${fills.length > 1 ? stops : [fills, fills]})`;
  const bars = own.map((unit, i) => {
    const ink = lit && !lit.has(unit) ? "var(--unit-off)" : `var(--unit-${colour(unit)}-bar)`;
    const at = (/** @type {number} */ part) => `${(100 * (i + part)) / own.length}%`;
    // A colour that another unit has as well has a gap.
    if (units.all[unit].colour < FILLS) return `${ink} ${at(0)} ${at(1)}`;
    return `${ink} ${at(0)} ${at(0.35)},transparent ${at(0.35)} ${at(0.65)},${ink} ${at(0.65)} ${at(1)}`;
  });
  // Beside the bar there is no room for several.
  const first = fills.length ? `linear-gradient(${fills[0]},${fills[0]})` : "none";
  const last = fills.at(-1) ?? "transparent";
  return { ground, first, last, bar: bars.length ? `linear-gradient(${bars.join(",")})` : "none" };
}

/** Pixels of a tag beside its letters, those of a letter, and what is around all tags of a row; then in a narrow column. */
const TAG = { around: 18, letter: 6.65, all: 32 };
const NARROW_TAG = { around: 10, letter: 6.05, all: 12 };

/**
 * Pixels that tags take at the end of a row, those before them included in which the text fades.
 * @param {HTMLElement[]} tags
 * @param {boolean} narrow
 */
export function roomOf(tags, narrow) {
  const { around, letter, all } = narrow ? NARROW_TAG : TAG;
  const wide = tags.map((one) => around + (one.dataset.tag ?? "").length * letter);
  return Math.ceil(wide.reduce((sum, one) => sum + one, tags.length ? all : 0));
}

/**
 * The tags of a row.
 * @param {Units} units
 * @param {readonly number[]} own by number
 */
export function rowTags(units, own) {
  const shown = own.length > MOST_TAGS ? own.slice(0, MOST_TAGS - 1) : own;
  const tags = shown.map((unit) => tag(units, unit));
  const rest = own.slice(shown.length).map((unit) => units.all[unit].tag);
  if (rest.length)
    tags.push(h("span", { class: "tag tag-more", title: rest.join(", "), "data-tag": `+${rest.length}` }));
  return tags;
}

/**
 * @param {Units} units
 * @param {number} unit
 */
export function tag(units, unit) {
  // Written by the style sheet: it is no part of the text, and no one copies it.
  return h("span", { class: `tag ${lookOf(units.all[unit])}`, "data-unit-tag": unit, "data-tag": units.all[unit].tag });
}

/** Rows of tags below a line at most, and pixels around them. */
const MOST_BELOW = 2;
const BESIDE_BELOW = 70;
/** Pixels of a letter of the line, where it is large. */
const INDENT = 9.7;

/**
 * The number of tags in each row below a line; what has no room is only counted, at the end.
 * @param {string[]} names
 * @param {number} indent characters that the line begins with
 * @param {number} width pixels
 * @param {boolean} narrow
 */
export function rowsBelow(names, indent, width, narrow) {
  const room = width - BESIDE_BELOW - indent * INDENT;
  const { around, letter } = narrow ? NARROW_TAG : TAG;
  const wide = (/** @type {string} */ name) => around + name.length * letter;
  const more = wide("+99");
  const rows = [0];
  let left = room;
  names.forEach((name, i) => {
    const last = rows.length === MOST_BELOW;
    const need = wide(name) + (last && i < names.length - 1 ? more : 0);
    if (need > left && rows[rows.length - 1] > 0) {
      if (last) left = -Infinity;
      else {
        rows.push(0);
        left = room;
      }
    }
    if (left < 0) return;
    rows[rows.length - 1] += 1;
    left -= wide(name);
  });
  return rows;
}

/**
 * The tags below a line, each of which leads to what its module computes.
 * @param {Units} units
 * @param {readonly number[]} own by number
 * @param {number[]} rows how many stand in each row
 * @param {number} indent characters that the line begins with
 * @param {number} above rows of its text
 */
export function tagsBelow(units, own, rows, indent, above) {
  let at = 0;
  const parts = rows.map((count) => {
    const tags = own.slice(at, at + count).map((unit) => {
      const one = tag(units, unit);
      one.dataset.unit = String(unit);
      one.tabIndex = -1;
      one.setAttribute("role", "button");
      one.setAttribute("aria-label", `module ${units.all[unit].tag}`);
      return one;
    });
    at += count;
    return h("span", { class: "tag-row" }, tags);
  });
  const rest = own.slice(at).map((unit) => units.all[unit].tag);
  if (rest.length)
    parts[parts.length - 1].append(
      h("span", { class: "tag tag-more", title: rest.join(", "), "data-tag": `+${rest.length}` }),
    );
  return h("span", { class: "tags-below", style: `--start:${indent};--rows:${above}` }, parts);
}

/**
 * The sign of a line that others lack, beside its number: at its end it would be beyond the edge of a narrow column.
 * @param {string} why
 */
export function signTag(why) {
  return h("span", { class: "tag tag-differs", role: "img", title: why, "aria-label": why, "data-tag": "≠" });
}

/**
 * The names of the calls in a line, below it.
 * @param {Units} units
 * @param {Segment[]} segments
 */
export function callNames(units, segments) {
  return h(
    "span",
    { class: "call-names", "aria-hidden": "true" },
    units.places(segments, TAG_SCALE).map(({ unit, at }) =>
      h("span", {
        class: `call-name ${lookOf(units.all[unit])}`,
        "data-unit": unit,
        "data-tag": units.all[unit].tag,
        style: `left:${at / TAG_SCALE}ch`,
      }),
    ),
  );
}

/**
 * Pieces of a line cut where calls begin and end, each with the number of its call, or -1.
 * @param {LinePiece[]} pieces
 * @param {Segment[]} segments
 * @returns {{ unit: number, pieces: LinePiece[] }[]}
 */
export function byCall(pieces, segments) {
  /** @type {{ unit: number, pieces: LinePiece[] }[]} */
  const runs = [];
  let at = 0;
  const unitAt = (/** @type {number} */ place) =>
    segments.find(({ start, end }) => start <= place && place < end)?.unit ?? -1;
  for (const [text, ink, match] of pieces) {
    let from = 0;
    while (from < text.length) {
      const place = at + from;
      const unit = unitAt(place);
      const borders = segments.flatMap(({ start, end }) => [start, end]).filter((border) => border > place);
      const stop = Math.min(text.length, Math.min(...borders, Infinity) - at);
      const last = runs[runs.length - 1];
      const run = last && last.unit === unit ? last : { unit, pieces: [] };
      if (run !== last) runs.push(run);
      run.pieces.push([text.slice(from, stop), ink, match]);
      from = stop;
    }
    at += text.length;
  }
  return runs;
}
