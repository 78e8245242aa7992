// The state of a page of captures side by side in the hash of its address: module, folding, and what is pinned where.

import { decodeState, encodeState, linkTrouble } from "../shell/permalink.js";
import { fingerprint } from "../shell/permalink_names.js";

/** @import { Index } from "../types.d.ts" */

/**
 * @typedef {object} CompareState
 * @property {number} module its number
 * @property {boolean} only whether only differences are open
 * @property {number} side the column whose pins these are; the others follow it
 * @property {{ items: number[], name: string }[]} pins
 */

/**
 * The hash for a state, without `#`.
 * @param {CompareState} state
 * @param {CompareState} rest the state of a page without a hash
 * @param {(Index | null)[]} columns
 */
export function encodeCompare(state, rest, columns) {
  const index = columns[state.side];
  const pins = index && state.pins.length ? encodeState({ compilation: 0, panes: null, pins: state.pins }, index) : "";
  const parts = [];
  if (state.module !== rest.module) parts.push(`module=${state.module}`);
  if (state.only !== rest.only) parts.push(`only=${state.only ? 1 : 0}`);
  // Of the last part, which capture it is of, the page has its own.
  if (pins) parts.push(`side=${state.side}`, pins.slice(0, pins.lastIndexOf("&of=")));
  if (parts.length) parts.push(`of=${printOf(columns)}`);
  return parts.join("&");
}

/**
 * The state that a hash names; what it does not name is as in `rest`.
 * @param {string} hash with or without `#`
 * @param {CompareState} rest
 * @param {(Index | null)[]} columns
 * @param {number} modules how many there are
 * @returns {{ state: CompareState, trouble: string }} and what to say where it names what is not there
 */
export function decodeCompare(hash, rest, columns, modules) {
  const values = new Map(
    hash
      .replace(/^#/, "")
      .split("&")
      .map((part) => /** @type {[string, string]} */ (part.split("=", 2))),
  );
  const lost = [];
  const module = number(values.get("module"), rest.module);
  if (module >= Math.max(1, modules)) lost.push(`module ${module}`);
  const requested = number(values.get("side"), rest.side);
  const side = columns[requested] ? requested : rest.side;
  if (side !== requested) lost.push(`column ${requested}`);
  const index = columns[side];
  const only = values.get("only");
  const state = {
    module: module < modules ? module : rest.module,
    only: only === "0" || only === "1" ? only === "1" : rest.only,
    side,
    pins: (index && side === requested && decodeState(hash, index)?.pins) || [],
  };
  const page = { what: "comparison", print: printOf(columns), lost };
  return { state, trouble: index ? linkTrouble(hash, index, [], page) : "" };
}

/**
 * @param {string | undefined} text
 * @param {number} otherwise
 */
function number(text, otherwise) {
  return text !== undefined && /^\d{1,6}$/.test(text) ? Number(text) : otherwise;
}

/** One short number for all captures. @param {(Index | null)[]} columns */
function printOf(columns) {
  const prints = columns.map((index) => (index ? Number.parseInt(fingerprint(index), 16) : 1));
  return prints.reduce((hash, one) => Math.imul(hash ^ one, 0x01000193) >>> 0, 0x811c9dc5).toString(16);
}
