// A text by lines: where each one starts, its coloured pieces, and which of them folds hide. No DOM.

/** @import { Fold, Text } from "../types.d.ts" */

/**
 * A piece of a line: text, ink (0 is plain), and the number of the match it belongs to, or -1.
 * @typedef {[string, number, number]} LinePiece
 */

/** Lines of a text, counted from 0. A newline at the very end starts no line. */
export class Lines {
  /** @param {Text} source */
  constructor({ text, inks }) {
    this.text = text;
    const starts = [];
    for (let at = 0; at < text.length;) {
      starts.push(at);
      const end = text.indexOf("\n", at);
      at = end < 0 ? text.length : end + 1;
    }
    this.count = starts.length;
    this.starts = Uint32Array.from(starts);
    this.inks = new Uint8Array(inks.length);
    this.runEnds = new Uint32Array(inks.length);
    let at = 0;
    for (let i = 0; i < inks.length; i++) {
      at += inks[i] >>> 4;
      this.inks[i] = inks[i] & 15;
      this.runEnds[i] = at;
    }
  }

  /**
   * The offset at which the text of a line starts.
   * @param {number} line
   */
  start(line) {
    return this.starts[line];
  }

  /**
   * The offset at which it ends, its newline not counted.
   * @param {number} line
   */
  end(line) {
    const next = line + 1 < this.count ? this.starts[line + 1] : this.text.length;
    return next > this.starts[line] && this.text.charCodeAt(next - 1) === 10 ? next - 1 : next;
  }

  /** @param {number} line */
  length(line) {
    return this.end(line) - this.starts[line];
  }

  /** @param {number} line */
  line(line) {
    return this.text.slice(this.starts[line], this.end(line));
  }

  /** Characters of the longest line, none counted above `limit`. @param {number} limit */
  widest(limit) {
    let most = 0;
    for (let line = 0; line < this.count; line++) most = Math.max(most, Math.min(this.length(line), limit));
    return most;
  }

  /**
   * The line that holds a place in the text.
   * @param {number} offset
   */
  at(offset) {
    return firstAbove(this.starts, offset, this.count) - 1;
  }

  /**
   * The first `limit` characters of a line in pieces of one ink each.
   * @param {number} line
   * @param {number} [limit]
   * @returns {LinePiece[]}
   */
  pieces(line, limit = Infinity) {
    const start = this.starts[line];
    const end = this.cut(line, limit);
    /** @type {LinePiece[]} */
    const pieces = [];
    let run = firstAbove(this.runEnds, start, this.runEnds.length);
    for (let at = start; at < end; run++) {
      const known = run < this.runEnds.length;
      const stop = known ? Math.min(this.runEnds[run], end) : end;
      const ink = known ? this.inks[run] : 0;
      const text = this.text.slice(at, stop);
      const last = pieces[pieces.length - 1];
      if (last && last[1] === ink) last[0] += text;
      else if (text) pieces.push([text, ink, -1]);
      at = stop;
    }
    return pieces;
  }

  /**
   * The end of the first `limit` characters of a line; no pair of surrogates is torn apart.
   * @param {number} line
   * @param {number} limit
   */
  cut(line, limit) {
    const start = this.starts[line];
    const end = this.end(line);
    if (end - start <= limit) return end;
    const high = this.text.charCodeAt(start + limit - 1) >> 10 === 0x36;
    return start + limit - (high ? 1 : 0);
  }

  /**
   * The starts of a text, capital letters or not, in order, at most `limit`, and whether there are more.
   * @param {string} wanted
   * @param {number} limit
   */
  find(wanted, limit) {
    /** @type {number[]} */
    const starts = [];
    if (wanted === "") return { starts, more: false };
    // Without the flag `u` a match has as many characters as what is looked for.
    const pattern = new RegExp(wanted.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "gi");
    for (let match = pattern.exec(this.text); match; match = pattern.exec(this.text)) {
      if (starts.length === limit) return { starts, more: true };
      starts.push(match.index);
    }
    return { starts, more: false };
  }
}

/**
 * Pieces cut at the borders of matches. `matches` holds the starts of all matches in the text, in order.
 * @param {LinePiece[]} pieces
 * @param {number} start where the pieces start in the text
 * @param {number[]} matches
 * @param {number} length of each match
 * @returns {LinePiece[]}
 */
export function withMatches(pieces, start, matches, length) {
  let match = Math.max(0, firstAbove(matches, start - length, matches.length));
  if (match >= matches.length) return pieces;
  /** @type {LinePiece[]} */
  const cut = [];
  let at = start;
  for (const [text, ink] of pieces) {
    let from = 0;
    while (from < text.length) {
      while (match < matches.length && matches[match] + length <= at + from) match += 1;
      const next = match < matches.length ? matches[match] - at : Infinity;
      const inside = next <= from;
      const stop = Math.min(text.length, inside ? next + length : next);
      cut.push([text.slice(from, stop), ink, inside ? match : -1]);
      from = stop;
    }
    at += text.length;
  }
  return cut;
}

/**
 * Rows of a listing. Each fold has a row of its own, which opens and closes it; its lines have rows while it
 * is open. Lines, rows and folds count from 0.
 */
export class Folds {
  /**
   * @param {number} count of lines
   * @param {Fold[]} folds first and last line counted from 1; one that overlaps another is left out
   */
  constructor(count, folds) {
    this.count = count;
    /** @type {Fold[]} */
    this.folds = [];
    let free = 1;
    for (const fold of [...folds].sort((a, b) => a.first - b.first)) {
      const last = Math.min(fold.last, count);
      // A single line takes no more room than the row that would stand for it.
      if (fold.first < free || last <= fold.first) continue;
      this.folds.push({ first: fold.first - 1, last: last - 1, label: fold.label });
      free = last + 1;
    }
    this.open = this.folds.map(() => false);
    this.foldStarts = this.folds.map((fold) => fold.first);
    /** Runs of rows: where each starts, and its first line, or -1 - fold. @type {number[]} */
    this.runRows = [];
    /** @type {number[]} */
    this.runLines = [];
    /** The row of each fold. @type {number[]} */
    this.foldRows = [];
    this.rows = 0;
    this.arrange();
  }

  arrange() {
    this.runRows = [];
    this.runLines = [];
    this.foldRows = [];
    let row = 0;
    let line = 0;
    /** @type {(what: number, length: number) => void} */
    const add = (what, length) => {
      if (length === 0) return;
      this.runRows.push(row);
      this.runLines.push(what);
      row += length;
    };
    this.folds.forEach((fold, i) => {
      add(line, fold.first - line);
      this.foldRows.push(row);
      add(-1 - i, 1);
      if (this.open[i]) add(fold.first, fold.last + 1 - fold.first);
      line = fold.last + 1;
    });
    add(line, this.count - line);
    this.rows = row;
  }

  /**
   * The line or the fold that a row shows; the other one is -1.
   * @param {number} row
   */
  at(row) {
    const run = firstAbove(this.runRows, row, this.runRows.length) - 1;
    const what = this.runLines[run];
    return what < 0 ? { line: -1, fold: -1 - what } : { line: what + row - this.runRows[run], fold: -1 };
  }

  /**
   * The fold that holds a line, -1 for none.
   * @param {number} line
   */
  foldOf(line) {
    const fold = firstAbove(this.foldStarts, line, this.foldStarts.length) - 1;
    return fold >= 0 && line <= this.folds[fold].last ? fold : -1;
  }

  /**
   * True if a line has a row of its own.
   * @param {number} line
   */
  shows(line) {
    const fold = this.foldOf(line);
    return fold < 0 || this.open[fold];
  }

  /**
   * The row of a line; the row of its fold while that is closed.
   * @param {number} line
   */
  row(line) {
    const fold = firstAbove(this.foldStarts, line, this.foldStarts.length) - 1;
    if (fold < 0) return line;
    const { last } = this.folds[fold];
    if (line > last)
      return this.foldRows[fold] + (this.open[fold] ? last - this.foldStarts[fold] + 1 : 0) + line - last;
    return this.foldRows[fold] + (this.open[fold] ? line - this.foldStarts[fold] + 1 : 0);
  }

  /**
   * The bits of all rows gathered at a few places from top to bottom.
   * @param {Uint16Array} lineBits
   * @param {Uint16Array} foldBits of closed folds; an open one is told by its lines
   * @param {number} places
   */
  summary(lineBits, foldBits, places) {
    const gathered = new Uint16Array(places);
    this.runRows.forEach((first, run) => {
      const end = this.runRows[run + 1] ?? this.rows;
      const what = this.runLines[run];
      for (let row = first; row < end; row++) {
        const bits = what < 0 ? (this.open[-1 - what] ? 0 : foldBits[-1 - what]) : lineBits[what + row - first];
        if (bits) gathered[Math.floor((row / this.rows) * places)] |= bits;
      }
    });
    return gathered;
  }

  /**
   * Opens or closes a fold.
   * @param {number} fold
   * @param {boolean} open
   */
  set(fold, open) {
    this.open[fold] = open;
    this.arrange();
  }
}

/**
 * The first of `count` ascending numbers that is greater than `value`; `count` if none is.
 * @param {ArrayLike<number>} ascending
 * @param {number} value
 * @param {number} count
 */
export function firstAbove(ascending, value, count) {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ascending[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}
