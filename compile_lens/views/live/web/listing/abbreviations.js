// Generated code as people would write it: without casts of indices, suffixes of numbers and long names. What is left
// out is only not shown: the text stays whole for search and copy.

/** @import { LinePiece } from "./lines.js" */

/** @typedef {[number, number]} Cut first character and the one past the last */

const CAST = "static_cast<int64_t>";

/**
 * The parts that are left out of a line.
 * @param {string} text
 * @param {number} indent characters at its start that all lines have
 * @param {boolean} [near] whether there is room for one blank only
 * @returns {Cut[]} in order, none over another
 */
export function cuts(text, indent, near = false) {
  const own = text.length - text.trimStart().length;
  // What is deep inside comes nearer: two blanks for each level.
  const more = Math.max(0, own - indent);
  const left = Math.min(own, indent) + (near ? Math.max(0, more - 1) : Math.floor(more / 2));
  /** @type {Cut[]} */
  const cut = left ? [[0, left]] : [];
  for (const { index, 0: name } of text.matchAll(/\bat::vec::/g)) cut.push([index, index + name.length]);
  for (const { index } of text.matchAll(/(?<=\b\d+)L\b/g)) cut.push([index, index + 1]);
  for (let at = text.indexOf(`${CAST}(`); at >= 0; at = text.indexOf(`${CAST}(`, at + 1)) {
    const open = at + CAST.length;
    const close = closing(text, open);
    if (close < 0) continue;
    // One name or number needs no brackets.
    if (/^\w+$/.test(text.slice(open + 1, close))) cut.push([at, open + 1], [close, close + 1]);
    else cut.push([at, open]);
  }
  return cut.sort((a, b) => a[0] - b[0]);
}

/**
 * The place at which a bracket is closed; -1 if it is not.
 * @param {string} text
 * @param {number} open
 */
function closing(text, open) {
  let depth = 0;
  for (let at = open; at < text.length; at++) {
    if (text[at] === "(") depth += 1;
    else if (text[at] === ")" && --depth === 0) return at;
  }
  return -1;
}

/**
 * True if anything that was found is in what is left out, other than in the blanks before a line.
 * @param {Cut[]} left
 * @param {LinePiece[]} pieces
 */
export function hides(left, pieces) {
  let at = 0;
  return pieces.some(([text, , match]) => {
    const from = at;
    at += text.length;
    return match >= 0 && left.some(([first, last]) => first > 0 && first < at && from < last);
  });
}

/**
 * Pieces without what is left out.
 * @param {LinePiece[]} pieces
 * @param {Cut[]} left
 * @returns {LinePiece[]}
 */
export function without(pieces, left) {
  /** @type {LinePiece[]} */
  const rest = [];
  let at = 0;
  for (const [text, ink, match] of pieces) {
    let from = at;
    const end = at + text.length;
    let visible = "";
    for (const [first, last] of left) {
      if (last <= from || first >= end) continue;
      visible += text.slice(from - at, Math.max(from, first) - at);
      from = Math.min(end, last);
    }
    visible += text.slice(from - at);
    if (visible) rest.push([visible, ink, match]);
    at = end;
  }
  return rest;
}
