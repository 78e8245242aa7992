// Machine code as it is read: an address, an operation, what it works on, with single blanks. Compilers put each of
// these into a column of its own, the operation of a GPU into the 36th. Lines stay lines. No DOM.

/** An instruction of NVIDIA's disassembler: its address, and what it says. */
const ADDRESSED = /^\s*\/\*([\da-f]{4,})\*\/\s*(.*?)\s*;?\s*$/;

/** Runs of blanks that stand in no quoted text. */
const BLANKS = /("(?:[^"\\]|\\.)*")|[ \t]+/g;

/**
 * A text without the columns of its compiler.
 * @param {string} text
 */
export function compact(text) {
  return text.split("\n").map(line).join("\n");
}

/** @param {string} whole */
function line(whole) {
  const [, address, instruction] = ADDRESSED.exec(whole) ?? [];
  if (address !== undefined) return `${address} ${single(instruction)}`;
  const text = single(whole.trim());
  return /^\s/.test(whole) && text ? `  ${text}` : text;
}

/** @param {string} text */
function single(text) {
  return text.replace(BLANKS, (_, quoted) => quoted ?? " ");
}
