// A chain as plain rows, one for each stage, in one line, and as text to copy. No DOM.

import { PYTHON } from "../data/model.js";
import { Reach, labelOf } from "../data/reasons.js";
import { shortened } from "../dom.js";

/** @import { Model } from "../data/model.js" */
/** @import { Compilation, Step } from "../types.d.ts" */

/**
 * @typedef {object} ChainRow
 * @property {string} title
 * @property {string} phase
 * @property {number} stage its number; -1 if it was not seen
 * @property {"python" | "nodes" | "kernels" | "lines" | "none"} holds
 * @property {number[]} items
 * @property {string} reason why it holds none
 * @property {boolean} [needed] whether all of it is there for a derivative alone
 */

/**
 * The rows of a chain: Python, then each compilation that it reaches, stage by stage. Neighbours that hold
 * nothing for the same reason share a row.
 * @param {Reach} reach
 * @returns {ChainRow[]}
 */
export function chainRows(reach) {
  const { model } = reach;
  /** @type {ChainRow[]} */
  const rows = [];
  const python = reach.stages.get(PYTHON) ?? [];
  const needed = python.filter((item) => reach.needed.has(item));
  const own = python.filter((item) => !reach.needed.has(item));
  if (own.length || needed.length === 0)
    rows.push(chainRow("Python", "", PYTHON, "python", own, own.length ? "" : reach.why(PYTHON)));
  if (needed.length) {
    const title = `Python: ${reach.neededFor(needed)}`;
    rows.push({ ...chainRow(title, "", PYTHON, "python", needed, ""), needed: true });
  }
  const reached = new Set([...reach.stages.keys()].map((stage) => model.index.stages[stage].compilation));
  model.core.compilations.forEach((compilation, number) => {
    if (reached.size > 1 || !reached.has(-1)) {
      if (!reached.has(number)) return;
    }
    for (const { phase, steps } of compilation.lanes) {
      for (const step of steps) rows.push(...stepRows(reach, step, phase, stepTitle(model, compilation, phase, step)));
    }
  });
  return merged(rows);
}

/**
 * The title of a step, with its phase, and with its compilation where there are several.
 * @param {Model} model
 * @param {Compilation} compilation
 * @param {string} phase
 * @param {Step} step
 */
function stepTitle(model, compilation, phase, step) {
  if (step.stage >= 0) return model.stageTitle(step.stage);
  const plain = phase && step.key !== phase ? `${phase} ${step.title}` : phase || step.title;
  return model.core.compilations.length > 1 ? `${compilation.id} ${plain}` : plain;
}

/**
 * @param {Reach} reach
 * @param {Step} step
 * @param {string} phase
 * @param {string} title
 * @returns {ChainRow[]}
 */
function stepRows(reach, step, phase, title) {
  const all = step.stage < 0 ? [] : (reach.stages.get(step.stage) ?? []);
  if (all.length === 0) return [chainRow(title, phase, step.stage, "none", [], reach.whyAt(step))];
  const needed = all.filter((item) => reach.needed.has(item));
  if (needed.length === 0) return itemRows(reach, step, phase, title, all);
  const own = all.filter((item) => !reach.needed.has(item));
  const rest = itemRows(reach, step, phase, `${title}: ${reach.neededFor(needed)}`, needed);
  return [
    ...(own.length ? itemRows(reach, step, phase, title, own) : []),
    ...rest.filter(({ holds }) => holds !== "none").map((row) => ({ ...row, needed: true })),
  ];
}

/**
 * @param {Reach} reach
 * @param {Step} step
 * @param {string} phase
 * @param {string} title
 * @param {number[]} items at least one
 * @returns {ChainRow[]}
 */
function itemRows(reach, step, phase, title, items) {
  if (!reach.model.isCode(step.stage)) return [chainRow(title, phase, step.stage, "nodes", items, "")];
  const { start, kernels } = reach.model.index.stages[step.stage];
  const lines = items.filter((item) => item >= start + kernels);
  const rows = [];
  if (items.length > lines.length) {
    const own = items.filter((item) => item < start + kernels);
    rows.push(chainRow(title, phase, step.stage, "kernels", own, ""));
  }
  const why = lines.length ? "" : "the record links no line of it to this chain";
  rows.push(chainRow(`${title}, lines`, phase, step.stage, lines.length ? "lines" : "none", lines, why));
  return rows;
}

/**
 * @param {string} title
 * @param {string} phase
 * @param {number} stage
 * @param {ChainRow["holds"]} holds
 * @param {number[]} items
 * @param {string} reason
 * @returns {ChainRow}
 */
function chainRow(title, phase, stage, holds, items, reason) {
  return { title, phase, stage, holds: items.length ? holds : "none", items, reason };
}

/** @param {ChainRow[]} rows */
function merged(rows) {
  /** @type {(ChainRow & { last?: string })[]} */
  const result = [];
  for (const row of rows) {
    const before = result[result.length - 1];
    if (
      before &&
      row.holds === "none" &&
      before.holds === "none" &&
      before.reason === row.reason &&
      before.phase === row.phase
    )
      before.last = row.title;
    else result.push({ ...row });
  }
  return result.map(({ last, ...row }) => ({ ...row, title: last ? `${row.title} … ${last}` : row.title }));
}

/**
 * The chain in one line: `model.py:7 → sin → … → cpp_fused_0`; a second phase follows after a semicolon.
 * @param {Model} model
 * @param {ChainRow[]} rows
 */
export function chainInLine(model, rows) {
  /** @type {Map<string, string[]>} */
  const phases = new Map();
  for (const { phase, holds, items, needed } of rows) {
    if (holds === "none" || holds === "lines" || needed) continue;
    const first = shortened(labelOf(model, items[0]), 40);
    const part = items.length > 1 ? `${first} +${items.length - 1}` : first;
    const parts = phases.get(phase) ?? [];
    if (parts[parts.length - 1] !== part) parts.push(part);
    phases.set(phase, parts);
  }
  const shared = phases.get("") ?? [];
  phases.delete("");
  const tails = [...phases.values()];
  const last = shared[shared.length - 1];
  for (const parts of tails) if (parts[0] === last) parts.shift();
  const lead = [...shared, ...(tails.shift() ?? [])];
  /** @param {string[]} parts */
  const elided = (parts) => (parts.length > 7 ? [...parts.slice(0, 4), "…", ...parts.slice(-2)] : parts);
  return [elided(lead).join(" → "), ...tails.map((parts) => `… → ${elided(parts).join(" → ")}`)].join(";  ");
}

/**
 * The chain as text to copy.
 * @param {Model} model
 * @param {string} name
 * @param {ChainRow[]} rows
 * @param {(item: number) => string} [textOf] the text of a line, where it is known
 */
export function chainAsText(model, name, rows, textOf = () => "") {
  const width = Math.min(40, Math.max(...rows.map((row) => row.title.length)));
  const lines = rows.flatMap((row) => {
    const title = row.title.padEnd(width);
    if (row.holds === "none") return [`${title}  (none: ${row.reason})`];
    if (row.holds === "nodes" || row.holds === "kernels")
      return [`${title}  ${row.items.map((item) => labelOf(model, item)).join(", ")}`];
    return row.items.map(
      (item, i) =>
        `${i === 0 ? title : " ".repeat(width)}  ${[labelOf(model, item), textOf(item)].filter(Boolean).join("  ")}`,
    );
  });
  return [`Chain of ${name}`, ...lines].join("\n") + "\n";
}

/**
 * Stages and items that stand in the chains of all pins.
 * @param {Model} model
 * @param {Reach[]} reaches
 * @returns {[number, number[]][]} by stage
 */
export function sharedItems(model, reaches) {
  if (reaches.length < 2) return [];
  const [first, ...others] = reaches;
  return [...first.stages]
    .map(
      ([stage, items]) =>
        /** @type {[number, number[]]} */ ([
          stage,
          items.filter((item) => others.every((other) => other.all.has(item))),
        ]),
    )
    .filter(([, items]) => items.length > 0);
}
