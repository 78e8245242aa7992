// The names of Python lines and of the capture in an address: the same on every machine.

/** @import { Index, IndexStage } from "../types.d.ts" */

const SEPARATOR = /[\\/]/;

/** @param {string} name `/home/ada/f.py:7` */
function parts(name) {
  const at = name.lastIndexOf(":");
  return { folders: name.slice(0, at).split(SEPARATOR), line: name.slice(at) };
}

/**
 * A line by its file, with as many folders as tell it from the other files.
 * @param {string} name
 * @param {IndexStage} stage
 * @param {Index} index
 */
export function lineTail(name, stage, index) {
  const { folders, line } = parts(name);
  for (let from = folders.length - 1; from > 0; from--) {
    const tail = folders.slice(from).join("/") + line;
    if (index.names[lineNamed(tail, stage, index)] === name) return tail;
  }
  return name;
}

/**
 * The item of a line by the end of its name, -1 where there is none or more than one.
 * @param {string} tail
 * @param {IndexStage} stage
 * @param {Index} index
 */
export function lineNamed(tail, stage, index) {
  const end = stage.start + stage.count;
  const exact = index.names.indexOf(tail, stage.start);
  if (exact >= 0 && exact < end) return exact;
  const wanted = tail.split(SEPARATOR).join("/");
  let match = -1;
  for (let item = stage.start; item < end; item++) {
    if (!index.names[item].split(SEPARATOR).join("/").endsWith(`/${wanted}`)) continue;
    if (match >= 0) return -1;
    match = item;
  }
  return match;
}

/** @type {WeakMap<Index, string>} */
const known = new WeakMap();

/**
 * A short number for what was captured: that of its stages and the names in them, without folders (FNV-1a, 32 bits).
 * @param {Index} index
 */
export function fingerprint(index) {
  const before = known.get(index);
  if (before !== undefined) return before;
  let hash = 0x811c9dc5;
  const add = (/** @type {string} */ text) => {
    for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
    hash = Math.imul(hash ^ 0x1f, 0x01000193);
  };
  for (const { key, start, count, compilation } of index.stages) {
    add(`${compilation} ${key} ${count}`);
    for (let item = start; item < start + count; item++) {
      const name = index.names[item];
      add(compilation < 0 ? (name.split(SEPARATOR).at(-1) ?? name) : name);
    }
  }
  const print = (hash >>> 0).toString(16);
  known.set(index, print);
  return print;
}
