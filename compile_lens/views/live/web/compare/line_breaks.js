// Where a line that is too long is broken. No elements.

/** Blanks that the rest of a line is indented by, beyond its beginning. */
const HANG = 4;
/** Of a row at most this share is left empty, so that a break comes behind a comma or a bracket. */
const LEAST = 0.55;

/**
 * Characters at which a line is broken so that no row is longer than so many, and the blanks that all but the first
 * begin with.
 * @param {string} text
 * @param {number} columns of a row
 * @param {number} outdent blanks at its beginning that are not shown, which `columns` counts
 * @param {number[]} calls characters at which calls begin or end: breaks are there, as far as they can
 * @returns {{ breaks: number[], hang: number }}
 */
export function breaksOf(text, columns, outdent = 0, calls = []) {
  const blanks = text.length - text.trimStart().length;
  const shown = Math.max(12, columns);
  // Half of a row at least is the line's own.
  const hang = Math.min(blanks + HANG, outdent + Math.floor((shown - outdent) / 2));
  /** @type {number[]} */
  const breaks = [];
  let start = 0;
  let room = shown;
  while (text.trimEnd().length - start > room) {
    const [least, most] = [start + room * LEAST, start + room];
    const call = Math.max(0, ...calls.filter((end) => end > least && end <= most));
    const at =
      call ||
      behind(text, /\s/, least, most) ||
      behind(text, /[,([{=]/, least, most) ||
      behind(text, /[:>]/, least, most) ||
      most;
    breaks.push(at);
    start = at;
    room = shown - hang;
  }
  return { breaks, hang };
}

/**
 * The last place behind a character of a kind and before what is no blank; 0 for none.
 * @param {string} text
 * @param {RegExp} kind
 * @param {number} least
 * @param {number} most
 */
function behind(text, kind, least, most) {
  for (let at = most; at > least; at--) if (kind.test(text[at - 1]) && /\S/.test(text[at] ?? "")) return at;
  return 0;
}
