// The differences between captures, and their reasons, below the columns.

import { button, h } from "../dom.js";

/** @import { Compared, ComparedChange } from "../types.d.ts" */
/** @import { Side } from "./side.js" */

/**
 * @param {Compared} compared
 * @param {(Side | null)[]} sides
 * @param {(column: number) => void} show brings the source of a column into view
 */
export function reasonsOf(compared, sides, show) {
  const levels = compared.levels.filter(({ changes }) => changes.length > 0);
  if (levels.length === 0) return null;
  return h(
    "section",
    { class: "compare-reasons", "aria-label": "what differs, and why" },
    levels.map(({ title, open, changes }) =>
      h(
        "details",
        { open },
        h("summary", { onclick: showFirst }, h("h2", {}, title)),
        ...changes.map((change) => reason(change, sides, show)),
      ),
    ),
  );
}

/**
 * Brings what is open below the window's edge into view before it is closed.
 * @param {Event} event
 */
function showFirst(event) {
  const [details] = event.composedPath().filter((one) => one instanceof HTMLDetailsElement);
  const first = details?.children[1];
  if (!details?.open || !first || first.getBoundingClientRect().top < innerHeight - 20) return;
  event.preventDefault();
  details.scrollIntoView();
}

/** @type {Record<string, string>} */
const SIGNS = { "+": "added", "−": "removed", "~": "changed" };

/**
 * @param {ComparedChange} change
 * @param {(Side | null)[]} sides
 * @param {(column: number) => void} show
 */
function reason({ mark, sentence, places, facts }, sides, show) {
  return h(
    "div",
    { class: "compare-reason" },
    h(
      "p",
      {},
      mark ? h("span", { class: `compare-mark compare-${SIGNS[mark]}`, title: SIGNS[mark] }, mark) : null,
      h("b", {}, sentence),
      places.flatMap(([text, at]) => [" ", at ? place(text, at, sides, show) : text]),
    ),
    h(
      "ul",
      {},
      facts.map(([target, text]) => h("li", {}, target ? h("b", {}, `${target}: `) : null, text)),
    ),
  );
}

/**
 * A Python line that pins itself, and with it its like in the other columns.
 * @param {string} text
 * @param {[number, number]} at column and item
 * @param {(Side | null)[]} sides
 * @param {(column: number) => void} show
 */
function place(text, [column, item], sides, show) {
  const pin = () => {
    sides[column]?.selection.toggle([item], text);
    show(column);
  };
  return button(text, pin, { class: "compare-place", label: "pin this line" });
}
