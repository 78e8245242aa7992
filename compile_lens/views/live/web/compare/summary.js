// The head of a page of captures side by side. Of a difference the first cause, in a line, and all of it on demand; else
// what came of it on the targets.

import { button, h } from "../dom.js";
import { ownName } from "../shell/header.js";
import { keyList } from "../controls/keys.js";
import { Popover } from "../controls/popover.js";

/** @import { Compared } from "../types.d.ts" */

/**
 * @param {string[]} summary lines, the first cause first
 * @returns {HTMLElement | null} null without any
 */
function summaryOf(summary) {
  const [first] = summary;
  if (!first) return null;
  const whole = button("all of it", () => undefined, { class: "button compare-whole" });
  const lines = h(
    "div",
    { class: "compare-all" },
    summary.map((text) => h("p", {}, text)),
  );
  return h(
    "div",
    { class: "compare-summary" },
    h("p", { class: "compare-cause", title: first }, first),
    whole,
    new Popover(whole, lines, { name: "what differs" }).element,
  );
}

/**
 * What came of it on the targets, and whether that is the same.
 * @param {Compared} compared
 */
function agreementOf({ headline, agreement }) {
  const words = headline ? [h("b", {}, headline), ` · ${agreement}`] : agreement;
  return h("span", { class: "compare-agreement", title: headline ? `${headline} · ${agreement}` : agreement }, words);
}

/**
 * @param {Compared} compared
 * @param {HTMLElement} find the search over all columns
 * @param {boolean} standalone
 */
export function headerOf(compared, find, standalone) {
  const about = button("i", () => undefined, { class: "button top-about", label: "about this comparison" });
  const { headline, agreement, mayDiffer } = compared;
  const facts = [...(headline ? [headline] : []), agreement, ...compared.facts, ...mayDiffer].map((fact) =>
    h("li", {}, fact),
  );
  const said = h("div", {}, h("ul", { class: "about" }, facts), keyList());
  const more = new Popover(about, said, { name: "about this comparison", right: true });
  return h(
    "header",
    { class: "top" },
    h(
      "div",
      { class: "top-name", role: "heading", "aria-level": standalone ? "1" : "2", title: compared.function },
      ownName(compared.function),
    ),
    compared.columns.map(({ target, failure }) =>
      h("span", { class: failure ? "top-chip top-bad" : "compare-target", title: failure || null }, target),
    ),
    summaryOf(compared.summary) ?? agreementOf(compared),
    h("span", { class: "top-rest" }),
    find,
    h("div", { class: "top-more" }, about, more.element),
  );
}
