// The state of a page in the hash of its address: compilation, open panes, pins. What a hash says is checked
// against what was captured; the rest of it is passed over.

import { COLOURS } from "../data/selection.js";
import { callOf } from "../data/units.js";
import { shortened } from "../dom.js";
import { placeOf, placeOfFinding } from "../panes/arrangement.js";
import { fingerprint, lineNamed, lineTail } from "./permalink_names.js";
import { MOST_TABS } from "../panes/tab_groups.js";

/** @import { Index, IndexStage } from "../types.d.ts" */
/** @import { Place } from "../panes/arrangement.js" */

/**
 * @typedef {{ place: Place, view: string }} OpenPane
 * @typedef {{ compilation: number, phase?: string, panes: OpenPane[][] | null, pins: { items: number[], name: string }[] }} PageState
 * `phase` only where it is not the usual one. `panes` is null where the hash names none, and the usual ones are wanted;
 * each is a list of its tabs, the shown one first.
 */

/** Characters of a hash that are read at all. */
const LONGEST_HASH = 100_000;
/** Characters of a name that stands in a hash as it is. */
const LONGEST_NAME = 120;
/** Characters of what is said to be lost. */
const LONGEST_LOST = 40;
const VIEWS = ["graph", "text", "fusion", "module"];

/**
 * The hash for a state, without `#`. Between its signs `& = ; : , /` stand only escaped strings and numbers.
 * @param {PageState} state
 * @param {Index} index
 * @returns {string}
 */
export function encodeState(state, index) {
  const parts = [];
  if (state.compilation > 0) parts.push(`c=${state.compilation}`);
  if (state.phase) parts.push(`phase=${escaped(state.phase)}`);
  if (state.panes) {
    const reference = (/** @type {OpenPane} */ { place, view }) => {
      if (place.finding) return `why:${place.finding}`;
      const shown = place.fusion ? "fusion" : view;
      return stageReference(index.stages[place.stage]) + (shown ? `:${shown}` : "");
    };
    const panes = state.panes.map((tabs) => tabs.map(reference).join("/"));
    parts.push(`open=${panes.join(",")}`);
  }
  for (const pin of state.pins) parts.push(`pin=${encodePin(pin, index)}`);
  if (parts.length) parts.push(`of=${fingerprint(index)}`);
  return parts.join("&");
}

/**
 * The state that a hash names, or null if it names none of this page. Never throws.
 * @param {string} hash with or without `#`
 * @param {Index} index
 * @param {string[]} findings keys of those that the page can show, "" for others
 * @param {string[]} lost gets what the hash names and the page does not have
 * @returns {PageState | null}
 */
export function decodeState(hash, index, findings = [], lost = []) {
  const body = hash.replace(/^#/, "");
  if (body === "" || body.length > LONGEST_HASH) return null;
  /** @type {PageState} */
  const state = { compilation: 0, panes: null, pins: [] };
  let known = false;
  for (const part of body.split("&")) {
    const at = part.indexOf("=");
    const value = part.slice(at + 1);
    const name = at < 0 ? "" : part.slice(0, at);
    if (name === "c") {
      const number = wholeNumber(value);
      if (number >= 0 && index.stages.some((stage) => stage.compilation === number)) {
        state.compilation = number;
        known = true;
      } else lost.push(`compilation ${shortened(value, LONGEST_LOST)}`);
    } else if (name === "phase") {
      if (index.stages.some(({ key }) => key.split(".")[0] === value)) {
        state.phase = value;
        known = true;
      } else lost.push(shortened(value, LONGEST_LOST));
    } else if (name === "open" && state.panes === null) {
      const panes = decodePanes(value, index, findings, lost);
      if (panes.length || value === "") {
        state.panes = panes;
        known = true;
      }
    } else if (name === "pin" && state.pins.length < COLOURS) {
      const pin = decodePin(value, index);
      if (pin) {
        state.pins.push(pin);
        known = true;
      } else lost.push(pinLabel(value));
    }
  }
  return known ? state : null;
}

/**
 * @param {string} value
 * @param {Index} index
 * @param {string[]} findings
 * @param {string[]} lost
 * @returns {OpenPane[][]}
 */
function decodePanes(value, index, findings, lost) {
  /** @type {Set<string>} */
  const known = new Set();
  return value
    .split(",")
    .map((tabs) =>
      tabs
        .split("/")
        .map((one) => {
          const pane = decodePane(one, index, findings);
          if (!pane && one) lost.push(shortened(unescaped(one.split(":")[1] ?? one) ?? one, LONGEST_LOST));
          return pane;
        })
        .filter((pane) => pane !== null)
        .filter(({ place }) => known.size < MOST_TABS && !known.has(place.key) && known.add(place.key)),
    )
    .filter((tabs) => tabs.length > 0);
}

/**
 * @param {string} value
 * @param {Index} index
 * @param {string[]} findings
 * @returns {OpenPane | null}
 */
function decodePane(value, index, findings) {
  const [compilation, key = "", view = ""] = value.split(":");
  if (compilation === "why") {
    const number = key ? findings.indexOf(key) : -1;
    return number < 0 ? null : { place: placeOfFinding(key, number), view: "" };
  }
  const stage = referredStage(compilation, key, index);
  if (stage < 0 || (view !== "" && !VIEWS.includes(view))) return null;
  const fusion = view === "fusion";
  if (fusion && !index.stages[stage].key.endsWith(".groups")) return null;
  return { place: placeOf(stage, fusion), view: fusion ? "" : view };
}

/**
 * A pin: its name, then its items by stage, `=name` for one and `3-5.9` for several, counted in the stage.
 * @param {{ items: number[], name: string }} pin
 * @param {Index} index
 */
function encodePin(pin, index) {
  const call = certainCallOf(pin.items, index);
  if (call) return `${escaped(shortened(pin.name, LONGEST_NAME))};python:source:=${escaped(call.address)}`;
  /** @type {Map<number, number[]>} */
  const byStage = new Map();
  for (const item of pin.items) {
    const stage = index.stages.findIndex((s) => item >= s.start && item < s.start + s.count);
    if (stage < 0) continue;
    const known = byStage.get(stage);
    if (known) known.push(item);
    else byStage.set(stage, [item]);
  }
  const only = pin.items.length === 1 ? index.names[pin.items[0]] : null;
  const parts = [pin.name === only ? "" : escaped(shortened(pin.name, LONGEST_NAME))];
  for (const [number, items] of byStage) {
    const stage = index.stages[number];
    const whole = items.length === 1 ? index.names[items[0]] : "";
    // Folders are those of one machine.
    const own = stage.compilation < 0 && whole ? lineTail(whole, stage, index) : whole;
    const named =
      own !== "" && own.length <= LONGEST_NAME && own === wellFormed(own) && itemNamed(own, stage, index) === items[0];
    const what = named ? `=${escaped(own)}` : encodeRanges(items.map((item) => item - stage.start));
    parts.push(`${stageReference(stage)}:${what}`);
  }
  return parts.join(";");
}

/**
 * @param {string} value
 * @param {Index} index
 * @returns {{ items: number[], name: string } | null}
 */
function decodePin(value, index) {
  const [label, ...groups] = value.split(";");
  /** @type {Set<number>} */
  const items = new Set();
  for (const group of groups) {
    const [compilation, key, ...rest] = group.split(":");
    const what = rest.join(":");
    const number = referredStage(compilation, key, index);
    if (number < 0) continue;
    const stage = index.stages[number];
    if (what.startsWith("=")) {
      const name = unescaped(what.slice(1));
      const item = name === null ? -1 : itemNamed(name, stage, index);
      const call = item < 0 && stage.compilation < 0 ? index.units.find(({ address }) => address === name) : undefined;
      for (const one of call?.items ?? (item >= 0 ? [item] : [])) items.add(one);
      if (call && !label) return { items: [...items], name: call.tag };
    } else {
      for (const local of decodeRanges(what, stage.count)) items.add(stage.start + local);
    }
  }
  if (items.size === 0) return null;
  const numbers = [...items];
  return { items: numbers, name: unescaped(label) || index.names[numbers[0]] };
}

/**
 * The call that some items are, if its address says so.
 * @param {number[]} items
 * @param {Index} index
 */
function certainCallOf(items, index) {
  const call = callOf(index.units, items);
  return call && index.units.filter(({ address }) => address === call.address).length === 1 ? call : undefined;
}

/**
 * The name of a pin that the page does not have: its own name, or that of its item.
 * @param {string} value
 */
function pinLabel(value) {
  const [label, first = ""] = value.split(";");
  const named = first.split(":").at(-1)?.replace(/^=/, "") ?? "";
  return shortened(unescaped(label || named) || "a pin", LONGEST_LOST);
}

/**
 * Words about a hash that was not made for this page, or names what is not in it; "" where all is well.
 * @param {string} hash with or without `#`
 * @param {Index} index
 * @param {string[]} findings
 * @param {{ what?: string, print?: string, lost?: string[] }} [page] what it is of, its own fingerprint, and what else of
 *   the hash it does not have
 */
export function linkTrouble(
  hash,
  index,
  findings = [],
  { what = "capture", print = fingerprint(index), lost = [] } = {},
) {
  decodeState(hash, index, findings, lost);
  const origin = /(?:^#?|&)of=([0-9a-f]{1,8})(?:&|$)/.exec(hash)?.[1];
  const other = origin !== undefined && origin !== print;
  const stale = `This link was made for another ${what}`;
  // What is no link of this kind names nothing.
  if (lost.length === 0) return other ? `${stale}: not all need be as it was there.` : "";
  const named = lost.slice(0, 3).join(", ") + (lost.length > 3 ? `, and ${lost.length - 3} more` : "");
  const it = other ? `${stale}. It` : "This link";
  return `${it} names what is not in this one: ${named}.`;
}

/**
 * Numbers as `3-5.9`, in their order.
 * @param {number[]} numbers
 */
export function encodeRanges(numbers) {
  const runs = [];
  for (let at = 0; at < numbers.length;) {
    let end = at;
    while (end + 1 < numbers.length && numbers[end + 1] === numbers[end] + 1) end += 1;
    runs.push(end === at ? `${numbers[at]}` : `${numbers[at]}-${numbers[end]}`);
    at = end + 1;
  }
  return runs.join(".");
}

/**
 * The numbers below `count` that a text of `encodeRanges` holds; those that it cannot hold are passed over.
 * @param {string} text
 * @param {number} count
 * @returns {number[]}
 */
export function decodeRanges(text, count) {
  /** @type {Set<number>} */
  const numbers = new Set();
  let total = 0;
  for (const run of text.split(".")) {
    const [from, to = from] = run.split("-").map(wholeNumber);
    if (from < 0 || to < from || to >= count) continue;
    total += to - from + 1;
    // Runs that overlap could ask for the same numbers over and over, and keep the page busy.
    if (total > count) break;
    for (let number = from; number <= to; number++) numbers.add(number);
  }
  return [...numbers];
}

/** @param {IndexStage} stage */
function stageReference(stage) {
  return stage.compilation < 0 ? "python:source" : `${stage.compilation}:${escaped(stage.key)}`;
}

/**
 * @param {string} compilation
 * @param {string | undefined} key
 * @param {Index} index
 */
function referredStage(compilation, key, index) {
  if (compilation === "python") return index.stages.findIndex((stage) => stage.compilation < 0);
  const number = wholeNumber(compilation);
  const wanted = unescaped(key ?? "");
  if (number < 0 || wanted === null) return -1;
  return index.stages.findIndex((stage) => stage.compilation === number && stage.key === wanted);
}

/**
 * @param {string} name
 * @param {IndexStage} stage
 * @param {Index} index
 */
function itemNamed(name, stage, index) {
  if (stage.compilation < 0) return lineNamed(name, stage, index);
  const item = index.names.indexOf(name, stage.start);
  return item >= 0 && item < stage.start + stage.count ? item : -1;
}

/**
 * -1 for what is no plain whole number.
 * @param {string} text
 */
function wholeNumber(text) {
  return /^\d{1,9}$/.test(text) ? Number(text) : -1;
}

/** @param {string} text */
function escaped(text) {
  return encodeURIComponent(wellFormed(text));
}

/**
 * null for what is no escaped text.
 * @param {string} text
 * @returns {string | null}
 */
function unescaped(text) {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    if (error instanceof URIError) return null;
    throw error;
  }
}

/**
 * Half a surrogate pair cannot be escaped.
 * @param {string} text
 */
function wellFormed(text) {
  return text.replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, "\ufffd");
}
