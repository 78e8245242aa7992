// The arrangement of panes: which stand side by side, in which order, and how wide. Plain values, no elements.

/** @import { Compilation, IndexStage, Lane, Step } from "../types.d.ts" */

/**
 * The content of a pane: a stage by its number (0 is the Python source), the fusion of a phase, which goes by the
 * number of its groups, or a finding by its key, whose number is past those of all stages. A tab of a pane stands where
 * that stood: `at` is the stage that has this place in the row.
 * @typedef {{ key: string, stage: number, fusion: boolean, finding: string, at?: number }} Place
 */

/** The number of the first finding. */
const FINDINGS = 1_000_000;

/** Stands for a finding where the story is shown, or how it failed or why nothing was compiled. */
export const STORY = "story";
export const OUTCOME = "outcome";
/** Stands for a finding where it is shown how a compilation was traced. */
export const TRACED = "traced";
/** @type {Record<string, number>} */
const NUMBERS = { [OUTCOME]: -1, [STORY]: 1000, [TRACED]: 1001 };

const PHASES = ["forward", "backward", "inference"];

/** Pixels of height that panes of a kind have where they stand below each other; a source has less if it is short. */
/** @type {Record<string, number>} */
const PHONE_HEIGHTS = { source: 440, graph: 380, code: 480 };

/** Pixels of the head of a pane, of a function in it, of a row, of the names below a line, and of a row of the table of compilations. */
const HEAD = 30;
const SOURCE_HEAD = 40;
const ROW = 21;
const LARGE_ROW = 27;
const TABLE_ROW = 28;
const NAMES_BELOW = 26;
const NOTE_BELOW = 24;

/** Panes that stand side by side at most. */
export const MOST_PANES = 3;
/** Pixels of width that a pane keeps. */
export const LEAST_WIDTH = 240;
/** Pixels of width below which panes stand below each other. */
export const PHONE_WIDTH = 640;

/**
 * @param {number} stage
 * @param {boolean} [fusion]
 * @returns {Place}
 */
export function placeOf(stage, fusion = false) {
  return { key: fusion ? `fusion ${stage}` : `stage ${stage}`, stage, fusion, finding: "" };
}

/**
 * @param {string} finding its key
 * @param {number} number among the findings
 * @returns {Place}
 */
export function placeOfFinding(finding, number) {
  if (Object.hasOwn(NUMBERS, finding)) number = NUMBERS[finding];
  return { key: `finding ${finding}`, stage: FINDINGS + number, fusion: false, finding };
}

/** The place of the capture in sentences. */
export function placeOfStory() {
  return placeOfFinding(STORY, NUMBERS[STORY]);
}

/** The place of how a capture ended that did not go well. */
export function placeOfOutcome() {
  return placeOfFinding(OUTCOME, NUMBERS[OUTCOME]);
}

/**
 * The stages of a compilation's fusion of a phase, or null where loops or groups were not seen.
 * @param {Lane} lane
 * @returns {{ loops: Step, groups: Step } | null}
 */
export function fusionOf(lane) {
  const loops = lane.steps.find((step) => step.key.endsWith(".loops") && step.stage >= 0);
  const groups = lane.steps.find((step) => step.key.endsWith(".groups") && step.stage >= 0);
  return loops && groups ? { loops, groups } : null;
}

/**
 * The number of panes that a row of this width can hold. A row without a width is not laid out yet and taken for a wide one.
 * @param {number} width pixels
 */
export function roomFor(width) {
  // On a phone they stand below each other.
  if (width <= 0 || width < PHONE_WIDTH) return MOST_PANES;
  return Math.min(MOST_PANES, Math.floor(width / LEAST_WIDTH));
}

/**
 * The number of panes that are open before anyone chooses.
 * @param {number} width pixels
 */
export function usualCount(width) {
  return width < PHONE_WIDTH || width >= 1000 ? 3 : 2;
}

/**
 * The panes that are open before anyone chooses: the Python source, the graph that runs in the call, its code.
 * Two: the source beside the code, or beside the graph where there is no code.
 * @param {Compilation | undefined} compilation
 * @param {number} width pixels
 * @param {boolean} python whether there is a source to show
 * @param {boolean} [below] whether the graph stands below the source, where three fit
 * @param {string} [phase] that is wanted first
 * @returns {Place[]} the most wanted first
 */
export function usualPlaces(compilation, width, python, below = false, phase = "") {
  const steps = (compilation?.lanes ?? []).flatMap((lane) => lane.steps).filter((step) => step.stage >= 0);
  /** @param {string[]} keys */
  const first = (...keys) => keys.map((key) => steps.find((step) => step.key === key)).find(Boolean);
  const graph = first(phase, "forward", "inference", "dynamo", "joint", "pre_grad", "backward");
  const code = first(`${phase}.code`, "forward.code", "inference.code", "backward.code");
  const wanted = python ? [0] : [];
  for (const step of [code, graph]) if (step) wanted.push(step.stage);
  if (wanted.length === 0 && steps.length) wanted.push(steps[0].stage);
  const count = below ? 3 : usualCount(width);
  return wanted.slice(0, count).map((stage) => placeOf(stage));
}

/**
 * The order in which panes and tabs stand: that of the stages, the fusion right after its groups.
 * @param {Place} a
 * @param {Place} b
 */
export function byStage(a, b) {
  return a.stage - b.stage || Number(a.fusion) - Number(b.fusion);
}

/**
 * The place that stands for another once another compilation is shown: its like, itself where it is of no compilation, null where
 * the other one has none.
 * @param {Place} place
 * @param {IndexStage[]} stages
 * @param {number} from number of a compilation
 * @param {number} to
 * @returns {Place | null}
 */
export function carriedOver(place, stages, from, to) {
  if (place.finding || stages[place.stage].compilation !== from) return place;
  const { key } = stages[place.stage];
  const stage = stages.findIndex((other) => other.compilation === to && other.key === key);
  return stage < 0 ? null : placeOf(stage, place.fusion);
}

/**
 * The like of a place in another phase; itself where it is of none.
 * @param {Place} place
 * @param {IndexStage[]} stages
 * @param {string} phase
 * @returns {Place}
 */
export function inPhase(place, stages, phase) {
  const { key = "", compilation = -1 } = place.finding ? {} : stages[place.stage];
  const [head, ...rest] = key.split(".");
  const wanted = [phase, ...rest].join(".");
  const like = PHASES.includes(head)
    ? stages.findIndex((other) => other.compilation === compilation && other.key === wanted)
    : -1;
  return like < 0 ? place : placeOf(like, place.fusion);
}

/**
 * Two neighbours' shares of the width after the line between them moved. Their sum stays, both keep `least`.
 * @param {[number, number]} shares
 * @param {[number, number]} widths pixels
 * @param {number} by pixels to the right
 * @param {number} [least]
 * @returns {[number, number]}
 */
export function sharesMoved(shares, widths, by, least = LEAST_WIDTH) {
  const total = widths[0] + widths[1];
  // With less room than both need neither can give anything.
  if (total <= 2 * least) return shares;
  const left = Math.min(total - least, Math.max(least, widths[0] + by));
  const sum = shares[0] + shares[1];
  return [(sum * left) / total, (sum * (total - left)) / total];
}

/**
 * Pixels that the source needs to be seen whole, with the table of its compilations.
 * @param {number} lines
 * @param {number} functions
 * @param {number} compilations
 * @param {number} notes below lines
 */
export function sourceHeight(lines, functions, compilations, notes) {
  const table = compilations > 1 ? SOURCE_HEAD + compilations * TABLE_ROW : 0;
  return (
    HEAD + functions * SOURCE_HEAD + NAMES_BELOW + notes * NOTE_BELOW + table + lines * (lines > 6 ? ROW : LARGE_ROW)
  );
}

/**
 * Pixels of height that a pane has on a phone.
 * @param {string} kind
 * @param {number} source what the source needs to be seen whole
 */
export function phoneHeight(kind, source) {
  return kind === "source" ? Math.min(PHONE_HEIGHTS[kind], source) : PHONE_HEIGHTS[kind];
}
