// The loops that became each fused group, in the order to draw them, with the bytes that this saved.

/** @import { Chain } from "../data/chain.js" */
/** @import { Model } from "../data/model.js" */
/** @import { GraphData, Ledger } from "../types.d.ts" */

/**
 * @typedef {object} PlanCard one loop or group
 * @property {number} item
 * @property {string} name
 * @property {string} kind
 * @property {string} target
 * @property {string[]} what names of what it computes, of a group those of all its loops
 * @property {number} reads modelled bytes, -1 if unknown
 * @property {number} writes modelled bytes, -1 if unknown
 */

/**
 * @typedef {object} PlanRow a group with the loops that went into it
 * @property {PlanCard | null} group null for loops that are in no group
 * @property {PlanCard[]} loops in the order in which they run
 * @property {string[]} kernels names of the kernels that run the group
 * @property {number | null} saved modelled bytes that its loops move alone less those that it moves; null if unknown
 */

/**
 * @typedef {object} FusionPlan
 * @property {PlanRow[]} rows in the order of execution
 * @property {PlanCard[]} nops loops and groups that run nothing
 * @property {number} loops
 * @property {number} groups
 */

/**
 * @param {Model} model
 * @param {Chain} chain
 * @param {{ stage: number, data: GraphData }} before the loops
 * @param {{ stage: number, data: GraphData }} after the groups
 * @returns {FusionPlan}
 */
export function fusionPlan(model, chain, before, after) {
  const loopsAt = model.index.stages[before.stage];
  const groupsAt = model.index.stages[after.stage];
  const loopCards = planCards(model, chain, before);
  const groupCards = planCards(model, chain, after);
  const members = new Map(after.data.members.map(([local, loops]) => [groupsAt.start + local, loops]));
  /** @param {number} item */
  const isLoop = (item) => item >= loopsAt.start && item < loopsAt.start + loopsAt.count;
  const placed = new Set();
  /** @type {PlanRow[]} */
  const rows = [];
  const nops = [];
  for (const group of groupCards.values()) {
    // The members say the order; where the record gives none, its links say at least which loops they are.
    const own = (members.get(group.item) ?? chain.above(group.item).filter(isLoop)).flatMap(
      (item) => loopCards.get(item) ?? [],
    );
    for (const loop of own) placed.add(loop.item);
    group.what = own.length === 1 ? own[0].what : [...new Set(own.flatMap((loop) => loop.what))];
    if (group.kind === "nop") nops.push(...own, group);
    else rows.push({ group, loops: own, kernels: kernelsOf(model, chain, group.item), saved: savedBytes(group, own) });
  }
  const loose = [...loopCards.values()].filter((loop) => !placed.has(loop.item));
  nops.push(...loose.filter((loop) => loop.kind === "nop"));
  const left = loose.filter((loop) => loop.kind !== "nop");
  if (left.length) rows.push({ group: null, loops: left, kernels: [], saved: null });
  /** @param {Map<number, PlanCard>} cards */
  const working = (cards) => [...cards.values()].filter((card) => card.kind !== "nop").length;
  return { rows, nops, loops: working(loopCards), groups: working(groupCards) };
}

/**
 * The nodes of a stage that run, by item: inputs only pass through.
 * @param {Model} model
 * @param {Chain} chain
 * @param {{ stage: number, data: GraphData }} from
 * @returns {Map<number, PlanCard>}
 */
function planCards(model, chain, { stage, data }) {
  const { start, count } = model.index.stages[stage];
  const traffic = new Map(data.traffic.map(([local, reads, writes]) => [local, { reads, writes }]));
  const python = model.index.stages[0].count;
  const rows = new Map();
  for (let local = 0; local < count; local++) {
    const item = start + local;
    const kind = model.kind(item);
    if (kind === "input" || kind === "output" || kind === "constant" || kind === "symbol") continue;
    const above = chain.above(item).filter((other) => other < start && other >= python);
    const { reads, writes } = traffic.get(local) ?? { reads: -1, writes: -1 };
    const target = data.strings[data.target[local]] ?? "";
    rows.set(item, {
      item,
      name: model.name(item),
      kind,
      target,
      what: above.map((other) => model.name(other)),
      reads,
      writes,
    });
  }
  return rows;
}

/** @param {Model} model @param {Chain} chain @param {number} group */
function kernelsOf(model, chain, group) {
  return chain
    .below(group)
    .filter((item) => model.kind(item) === "kernel")
    .map((item) => model.name(item));
}

/**
 * Modelled bytes that a group moves less than its loops by themselves; `null` where one of them is unknown.
 * @param {PlanCard} group
 * @param {PlanCard[]} loops
 */
export function savedBytes(group, loops) {
  const cards = [group, ...loops];
  if (loops.length === 0 || cards.some((card) => card.reads < 0 || card.writes < 0)) return null;
  return loops.reduce((sum, loop) => sum + loop.reads + loop.writes, 0) - group.reads - group.writes;
}

/**
 * The rows to show first. Of many, those that hold a fusion come first and the others on demand.
 * @param {FusionPlan} plan
 * @param {number} limit loops up to which everything is shown
 * @param {boolean} all
 * @returns {{ rows: PlanRow[], left: number }} and how many rows are left out
 */
export function rowsToShow(plan, limit, all) {
  if (all || plan.loops <= limit) return { rows: plan.rows, left: 0 };
  const fused = plan.rows.filter((row) => row.group && row.loops.length > 1);
  return fused.length ? { rows: fused, left: plan.rows.length - fused.length } : { rows: plan.rows, left: 0 };
}

/**
 * A curve from each of some loops, which share the height evenly, to the middle of their group; in a box of
 * 100 by 100.
 * @param {number} count
 * @returns {string[]} paths of SVG
 */
export function curvesInto(count) {
  return Array.from({ length: count }, (_, i) => {
    const y = Math.round(((i + 0.5) / count) * 10_000) / 100;
    return `M0 ${y}C50 ${y} 50 50 100 50`;
  });
}

/**
 * `sin, pow_1, cos +2`.
 * @param {string[]} names
 * @param {number} limit
 */
export function firstNames(names, limit) {
  const some = names.slice(0, limit).join(", ");
  return names.length > limit ? `${some} +${names.length - limit}` : some;
}

/**
 * The figures of a phase in the ledger, by title of their column; `null` if the ledger has no such row.
 * @param {Ledger} ledger
 * @param {string} phase
 * @returns {Map<string, string> | null}
 */
export function figuresOf(ledger, phase) {
  const row = ledger.rows.find(({ name }) => name === phase);
  return row ? new Map(ledger.columns.map(({ title }, i) => [title, row.figures[i] ?? "—"])) : null;
}
