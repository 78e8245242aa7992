// The head of a pane: the places that share it, and beside code the findings that explain it. Plain values, no
// elements.

import { PYTHON } from "../data/model.js";
import { byStage, OUTCOME, placeOfFinding, placeOfStory, STORY, TRACED } from "./arrangement.js";
import { besideCode } from "./finding_tabs.js";
import { figure } from "./flow_steps.js";

/** Stages whose nodes are loops and groups of them. */
const LOWERED = /\.(loops|groups)$/;

/** @import { Model } from "../data/model.js" */
/** @import { Place } from "./arrangement.js" */
/** @import { Group } from "./tab_groups.js" */

/**
 * A tab. `page` is that of a generated module, where the tab leads to one; a badge in amber says what there is to explain.
 * @typedef {{ place: Place, page: "" | "kernel" | "module", title: string, badge: string, amber: boolean }} Tab
 */

/**
 * The kind of pane of a place: `source`, `graph` or `code`, which is also where findings stand.
 * @param {Model} model
 * @param {Place} place
 */
export function kindOf(model, { stage, fusion, finding }) {
  if (finding || fusion) return "code";
  if (stage === PYTHON) return "source";
  return model.isCode(stage) ? "code" : "graph";
}

/**
 * The name of a place.
 * @param {Model} model
 * @param {Place} place
 */
export function titleOf(model, { stage, fusion, finding }) {
  if (finding === STORY) return "Story";
  if (finding === TRACED) return "traced";
  if (finding === OUTCOME) return outcomeTitle(model);
  if (finding) return model.finding(finding).title;
  if (stage === PYTHON) return "Python source";
  const title = model.stageTitle(stage);
  return fusion ? title.replace(/groups$/, "fusion") : title;
}

/**
 * The tabs of a pane, in order; none where there is nothing to choose from.
 * @param {Model} model
 * @param {Group} group
 * @returns {Tab[]}
 */
export function tabsOf(model, group) {
  const stages = group.filter(({ finding }) => !finding).sort(byStage);
  const codes = stages.filter(({ stage, fusion }) => !fusion && stage !== PYTHON && model.isCode(stage));
  // The code that was used last has the tabs of its pages, and of what is known of it.
  const code = group.find((place) => codes.includes(place));
  /** @type {Tab[]} */
  const tabs = group
    .filter(({ finding }) => finding === OUTCOME)
    .map((place) => ({ place, page: "", title: titleOf(model, place), badge: "", amber: false }));
  for (const place of stages) {
    const alone = place === code && codes.length === 1;
    const title = alone ? kernelsTitle(model, place) : titleOf(model, place);
    tabs.push({ place, page: place === code ? "kernel" : "", title, badge: "", amber: false });
    if (place === code) tabs.push({ place, page: "module", title: "module", badge: "", amber: false });
  }
  const { findings, compilations } = model.core;
  const lane = code && compilations[model.index.stages[code.stage].compilation].lanes;
  const own = code && lane?.find(({ phase }) => phase === model.phase(code.stage));
  const known = code ? besideCode(findings, own?.notFused ?? 0) : [];
  for (const { key, title, badge, amber } of known) {
    const place = placeOfFinding(
      key,
      findings.findIndex((one) => one.key === key),
    );
    tabs.push({ place, page: "", title, badge, amber });
  }
  if (code) tabs.push({ place: placeOfStory(), page: "", title: "story", badge: "", amber: false });
  for (const place of group.filter(({ finding }) => finding)) {
    if (tabs.some((tab) => tab.place.key === place.key)) continue;
    tabs.push({ place, page: "", title: titleOf(model, place), badge: "", amber: false });
  }
  return tabs.length > 1 ? tabs : [];
}

/** @param {Model} model */
function outcomeTitle({ core }) {
  const { failure } = core.outcome;
  if (!failure) return "Why nothing was compiled";
  return failure.stage === "run" ? "What was raised" : "Error of torch";
}

/**
 * @param {Model} model
 * @param {Place} place
 */
function kernelsTitle(model, place) {
  return model.step(place.stage)?.facts[0]?.startsWith("1 ") ? "kernel" : "kernels";
}

/**
 * The content of a place in a few words, and its kind.
 * @param {Model} model
 * @param {Place} place
 */
export function factsOf(model, { stage, fusion, finding }) {
  if (finding === OUTCOME) return { facts: "", meaning: model.core.outcome.verdict };
  if (finding === STORY) return { facts: "", meaning: "the capture in sentences" };
  if (finding === TRACED) return { facts: "", meaning: "" };
  if (finding) {
    const { fact, intro } = model.finding(finding);
    return { facts: fact, meaning: intro };
  }
  const step = model.step(stage);
  if (!step) return { facts: "", meaning: model.core.words.sources };
  if (fusion) return { facts: "", meaning: "which loops went into which group, and what that saved" };
  // Of a graph whose operators the ledger counts, that number too: the row above the panes has it.
  const { compilation, key } = model.index.stages[stage];
  const counted = model.core.compilations[compilation].ledger.rows.find(({ name }) => name === key);
  const facts = [...step.facts, counted && figure(counted.figures[1], "op"), step.same].filter(Boolean).join(" · ");
  const meaning = model.isCode(stage) || LOWERED.test(key) ? "" : model.core.words.counted;
  return { facts, meaning: [step.meaning, meaning].filter(Boolean).join("\n") };
}
