// The controls to go on with where a graph is too large to be drawn whole.

import { button } from "../dom.js";

/** @import { GraphPane } from "./pane.js" */

/**
 * The remedies, in words and as controls; nothing where all nodes are drawn.
 * @param {GraphPane} pane
 */
export function nextSteps(pane) {
  if (pane.body < 0 || pane.data.scenes[pane.scene].whole >= 0) return [];
  return [
    ": double-click a box, ",
    button("open all by one level", () => pane.openLevel(), { class: "link" }),
    " or ",
    button("find a node", () => pane.search.input.focus(), { class: "link" }),
  ];
}
