// The way of a compilation in one row: which stages stand in it for a phase, what they count, and the steps between. No
// elements.

import { plural } from "../dom.js";
import { placeOf, placeOfFinding, TRACED } from "./arrangement.js";

/** @import { Core, IndexStage, Compilation, Lane, Step } from "../types.d.ts" */
/** @import { Place } from "./arrangement.js" */

/**
 * A stage in the row.
 * @typedef {object} Noun
 * @property {string} name its class
 * @property {string} count `5 ops`
 * @property {string} what `ATen = post-grad`
 * @property {number} stage -1 where it was not seen
 * @property {string} missing why, then
 * @property {string} meaning
 */

/**
 * A step from one stage to the next.
 * @typedef {object} Verb
 * @property {string} name
 * @property {string} note in amber: what there is to explain; "" if nothing
 * @property {Place | null} place what says why
 * @property {boolean} [stopped] whether it failed there
 */

/**
 * The phases of a compilation with what became of their operators.
 * @param {Compilation} compilation
 * @returns {{ phase: string, figures: string }[]}
 */
export function phasesOf(compilation) {
  return compilation.lanes
    .filter(({ phase }) => phase)
    .map(({ phase }) => {
      const row = compilation.ledger.rows.find(({ name }) => name === phase);
      return { phase, figures: row ? `${figure(row.figures[0], "op")} → ${plain(row.figures[4])}` : "" };
    });
}

/**
 * Stages and steps of a phase, in order: a noun first and last, a verb between two.
 * @param {Core} core
 * @param {IndexStage[]} stages
 * @param {number} number of the compilation
 * @param {string} phase "" where there is none
 * @param {number} lines how many Python lines it works in
 * @returns {(Noun | Verb)[]}
 */
export function flowSteps(core, stages, number, phase, lines) {
  if (!core.compilations[number]) return nothingReached(core);
  return stoppedIn(core, number, phase, reached(core, stages, number, phase, lines));
}

/** Stages that every compilation goes through, with what leads to each. */
const WAY = [
  ["traced", "dynamo", "Dynamo"],
  ["decomposed", "aten", "ATen"],
  ["inlined", "loops", "loops"],
  ["fused", "groups", "groups"],
  ["generated", "code", "kernels"],
];

/**
 * The way of a call of which nothing was compiled.
 * @param {Core} core
 * @returns {(Noun | Verb)[]}
 */
function nothingReached({ sources, outcome, words }) {
  const missing = outcome.verdict;
  const stopped = outcome.failure?.stage === "dynamo";
  // A program that raised, or had nothing to compile, did reach Dynamo: there is nothing of it, that is all.
  const what = stopped ? NOT_REACHED : "none";
  /** @type {(Noun | Verb)[]} */
  const steps = [];
  if (sources.length)
    steps.push({
      name: "python",
      count: many(sources.length, "function"),
      what: "Python",
      stage: 0,
      missing: "",
      meaning: words.sources,
    });
  WAY.forEach(([name, stage, title], i) => {
    if (i || steps.length) steps.push({ ...verb(name, "", null), stopped: stopped && i === 0 });
    steps.push({ name: stage, count: title, what, stage: -1, missing, meaning: "" });
  });
  return steps;
}

const NOT_REACHED = "not reached";

/**
 * The steps, with where it failed, and what was not reached for it.
 * @param {Core} core
 * @param {number} number of the compilation
 * @param {string} phase
 * @param {(Noun | Verb)[]} steps
 */
function stoppedIn({ compilations, outcome }, number, phase, steps) {
  const failed = outcome.failure?.stage ?? "";
  const own = compilations[number].lanes.filter((lane) => lane.phase === "" || lane.phase === phase);
  const keys = own.flatMap((lane) => lane.steps).map((step) => step.key);
  const at = keys.indexOf(failed);
  if (at < 0) return steps;
  let stopped = false;
  return steps.map((step, i) => {
    const next = "stage" in step ? step : steps[i + 1];
    if (!next || !("stage" in next) || next.stage >= 0 || next.name === "python") return step;
    const key = keyOf(next.name, phase);
    if (keys.indexOf(key) < at || next.count === "none") return step;
    if (step === next)
      return { ...next, count: WAY.find(([, name]) => name === next.name)?.[2] ?? "", what: NOT_REACHED };
    const first = !stopped;
    stopped = true;
    return { ...step, stopped: first };
  });
}

/**
 * The key of a stage by its name in the row.
 * @param {string} name
 * @param {string} phase
 */
function keyOf(name, phase) {
  if (name === "dynamo") return name;
  return name === "aten" ? phase : `${phase}.${name}`;
}

/**
 * @param {Core} core
 * @param {IndexStage[]} stages
 * @param {number} number of the compilation
 * @param {string} phase
 * @param {number} lines
 * @returns {(Noun | Verb)[]}
 */
function reached(core, stages, number, phase, lines) {
  const compilation = core.compilations[number];
  const shared = compilation.lanes.find((lane) => lane.phase === "");
  const lane = compilation.lanes.find((one) => one.phase === phase && phase);
  const row = compilation.ledger.rows.find(({ name }) => name === phase);
  /** @param {Lane | undefined} from @param {string} key */
  const step = (from, key) => from?.steps.find((one) => one.key === key);
  /** @type {(Noun | Verb)[]} */
  const steps = [];
  if (core.sources.length || stages[0].count)
    steps.push({
      name: "python",
      count: lines ? many(lines, "line") : many(core.sources.length, "function"),
      what: "Python",
      stage: 0,
      missing: "",
      meaning: core.words.sources,
    });
  else if (core.noSource)
    steps.push({ name: "python", count: "none", what: "Python", stage: -1, missing: core.noSource, meaning: "" });
  const { ending, guards } = compilation;
  const traced = ending || guards.length ? placeOfFinding(TRACED, 0) : null;
  const dynamo = step(shared, "dynamo");
  if (dynamo) {
    steps.push(verb("traced", compilation.ending ? "up to break" : "", traced));
    steps.push(counting(noun("dynamo", dynamo, dynamo.facts[1] ?? dynamo.facts[0] ?? "", "Dynamo"), core));
  }
  if (!lane) return steps;
  const joint = step(shared, "joint");
  const calls = joint && joint.stage >= 0 ? (joint.facts[1] ?? "").split(" ")[0] : "";
  const aten = step(lane, phase);
  if (aten) {
    steps.push(
      verb(calls ? `joint ${calls}` : "decomposed", "", joint && joint.stage >= 0 ? placeOf(joint.stage) : traced),
    );
    const after = step(lane, `${phase}.post_grad`);
    const count = row ? figure(row.figures[1], "op") : (aten.facts[1] ?? "");
    steps.push(counting(noun("aten", aten, count, after?.unchanged ? "ATen = post-grad" : "ATen"), core));
  }
  const finding = (/** @type {string} */ key) => {
    const at = core.findings.findIndex((one) => one.key === key && !one.missing);
    return at < 0 ? null : placeOfFinding(key, at);
  };
  const loops = step(lane, `${phase}.loops`);
  const groups = step(lane, `${phase}.groups`);
  const code = step(lane, `${phase}.code`);
  if (loops) {
    steps.push(verb("inlined", "", finding("lowering")));
    steps.push(noun("loops", loops, row ? figure(row.figures[2], "loop") : loops.facts[0], "Inductor"));
  }
  if (groups) {
    steps.push(verb("fused", lane.notFused ? `${plural(lane.notFused, "pair")} not` : "", finding("fusion")));
    steps.push(noun("groups", groups, row ? figure(row.figures[3], "group") : groups.facts[0], "scheduler"));
  }
  if (code) {
    steps.push(verb("generated", "", finding("traffic")));
    steps.push(noun("code", code, code.facts[0] ?? "", code.facts[1] ?? "code"));
  }
  return steps;
}

/**
 * @param {string} name
 * @param {string} note
 * @param {Place | null} place
 * @returns {Verb}
 */
function verb(name, note, place) {
  return { name, note, place };
}

/**
 * @param {string} name
 * @param {Step} step
 * @param {string} count
 * @param {string} what
 * @returns {Noun}
 */
function noun(name, step, count, what) {
  const { stage, missing, meaning } = step;
  const seen = stage >= 0;
  const none = step.kind === "none" ? "none" : "not seen";
  return { name, count: seen ? count : none, what, stage, missing: seen ? "" : missing, meaning };
}

/**
 * A stage that is a graph of FX: of its nodes other numbers are told elsewhere.
 * @param {Noun} noun
 * @param {Core} core
 */
function counting(noun, { words }) {
  return { ...noun, meaning: [noun.meaning, words.counted].filter(Boolean).join("\n") };
}

/**
 * A figure of the ledger with its unit; what is unknown is `?`.
 * @param {string} text
 * @param {string} one
 */
export function figure(text, one) {
  return `${plain(text)} ${text === "1" ? one : `${one}s`}`;
}

/** @param {string} text */
function plain(text) {
  return text === "—" || text === "" ? "?" : text;
}

/**
 * @param {number} count
 * @param {string} one
 */
function many(count, one) {
  return `${count} ${count === 1 ? one : `${one}s`}`;
}
