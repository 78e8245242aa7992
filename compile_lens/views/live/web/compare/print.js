// The printed page of several captures: the open sources, graph and code, and why they differ.

import { Paper } from "../shell/print.js";

/** @import { SourcePane } from "../code/source_pane.js" */
/** @import { Compared } from "../types.d.ts" */
/** @import { CompareGraph } from "./graph.js" */
/** @import { Side } from "./side.js" */

/**
 * @param {object} page
 * @param {Compared} page.compared
 * @param {(Side | null)[]} page.sides
 * @param {SourcePane[]} page.sources one for all, or one for each that is there
 * @param {CompareGraph} page.graph
 * @param {HTMLElement} page.element
 * @param {HTMLElement} page.flow
 * @param {number} page.module that is shown
 */
export function comparePrint(page) {
  const { compared, sides, sources, graph, element, flow } = page;
  const targets = compared.columns.map(({ target }) => target);
  const there = targets.filter((_, number) => sides[number]);
  const frames = () => {
    const python = sources.map((pane, i) => ({
      title: sources.length > 1 ? `Python source, ${there[i]}` : "Python source",
      pane,
    }));
    const drawn = graph.pane
      ? [{ title: graph.same ? "graph, the same for all" : `graph, ${targets[graph.chosen]}`, pane: graph.pane }]
      : [];
    const code = sides.map((side, number) => ({
      title: `${targets[number]}: code`,
      pane: side?.pane ?? failed(element, number),
    }));
    const reasons = element.querySelector(".compare-reasons");
    const why = reasons
      ? [{ title: "What differs, and why", pane: { element: reasons, paper: () => [opened(reasons)] } }]
      : [];
    return [...python, ...drawn, ...code, ...why];
  };
  const closed = () => [
    ...compared.modules.filter((_, number) => number !== page.module).map(({ title }) => `${title} code`),
    ...targets.filter((_, number) => !graph.same && number !== graph.chosen).map((target) => `the graph of ${target}`),
  ];
  const header = /** @type {HTMLElement} */ (element.querySelector(".top"));
  return new Paper({ header, flow, frames, closed });
}

/**
 * The words in a column that has no code.
 * @param {HTMLElement} element
 * @param {number} number
 */
function failed(element, number) {
  const column = element.querySelectorAll(".compare-column")[number];
  const words = column?.querySelector(".compare-failure, .listing-empty");
  return words ? { element: words } : null;
}

/**
 * A copy in which nothing is folded: no one opens it on paper.
 * @param {Element} element
 */
function opened(element) {
  const copy = /** @type {Element} */ (element.cloneNode(true));
  for (const fold of copy.querySelectorAll("details")) fold.open = true;
  return copy;
}
