// What a call that Dynamo recorded became in a later graph, where nothing bears its name.

import { PYTHON } from "../data/model.js";

/** @import { PageOfCapture } from "../code/additions.js" */

/** Names before the rest is only counted. */
const FEW = 3;

/**
 * `decomposed into amax, sub, exp +2`; "" where no call that Dynamo recorded has the word in its name, and for a pane
 * that shows no graph.
 * @param {PageOfCapture} page
 * @param {ParentNode} pane
 * @param {string} wanted
 */
export function replacementWords({ app: { model, chain }, panes }, pane, wanted) {
  const stage = panes.shown.find(({ element }) => element === pane)?.place.stage ?? PYTHON;
  if (stage <= PYTHON || model.isCode(stage)) return "";
  const { stages, names } = model.index;
  const word = wanted.trim().toLowerCase();
  const first = model.stage(stages[stage]?.compilation ?? -1, "dynamo");
  if (first < 0 || stage <= first || word === "") return "";
  const { start, count } = stages[first];
  const calls = Array.from({ length: count }, (_, i) => start + i).filter((item) =>
    names[item].toLowerCase().includes(word),
  );
  const own = stages[stage];
  const inStage = (/** @type {number} */ item) => item >= own.start && item < own.start + own.count;
  const became = chain.descendants(calls).filter((item) => inStage(item) && model.counts(item));
  const operators = [...new Set(became.map((item) => names[item].replace(/_\d+$/, "")))];
  if (operators.length === 0) return "";
  const backward = model.phase(stage) === "backward";
  const verb = backward ? "its gradient is" : operators.length > 1 ? "decomposed into" : "there it is";
  const more = operators.length - FEW;
  return `${verb} ${operators.slice(0, FEW).join(", ")}${more > 0 ? ` +${more}` : ""}`;
}
