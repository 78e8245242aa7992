// The head of the page and the row of counts below it: the largest consequence with its cause or the result, then a figure for each stage.

import { stepWords } from "../chain/flow_parts.js";
import { Popover } from "../controls/popover.js";
import { button, h } from "../dom.js";
import { ownName, pageAbout, pageName } from "../shell/header.js";

/** @import { Compared, ComparedModule } from "../types.d.ts" */

/**
 * The largest consequence, then the first cause.
 * @param {Compared} compared
 * @returns {HTMLElement | null} null without any
 */
function summaryOf({ headline, summary }) {
  const [cause] = summary;
  if (!cause) return null;
  const first = [headline, cause].filter(Boolean).join(" · ");
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
 * The result on the targets, and whether it is the same.
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
  const { headline, agreement, mayDiffer } = compared;
  const facts = [...(headline ? [headline] : []), agreement, ...compared.facts, ...mayDiffer].map((fact) =>
    h("li", {}, fact),
  );
  return h(
    "header",
    { class: "top" },
    pageName(compared.function, ownName(compared.function), standalone),
    compared.columns.map(({ target, failure }) =>
      h("span", { class: failure ? "top-chip top-bad" : "compare-target", title: failure || null }, target),
    ),
    summaryOf(compared) ?? agreementOf(compared),
    h("span", { class: "top-rest" }),
    find,
    pageAbout("about this comparison", h("ul", { class: "about" }, facts)),
  );
}

/** Verbs for the step from one count to the next. @type {Record<string, string>} */
const VERBS = { loops: "inlined", groups: "fused", kernels: "generated", launches: "called" };

/**
 * @param {Compared} compared
 * @param {ComparedModule | undefined} module
 */
export function stepsOf({ same: two, columns }, module) {
  const [between, of] = two ? [" → ", ""] : [" · ", `: ${columns.map(({ target }) => target).join(" · ")}`];
  return (module?.counts ?? []).flatMap(([title, values], i) => {
    const same = values.every((value) => value === values[0]);
    const chip = h(
      "li",
      { class: same ? "flow-step" : "flow-step compare-differs" },
      h(
        "span",
        { class: "flow-noun" },
        h("span", { class: "flow-count" }, same ? values[0] : values.join(between)),
        h("span", { class: "flow-what" }, same ? one(title, values[0]) : `≠ ${title}`, [
          h("span", { class: "flow-wide" }, same ? " each" : of),
        ]),
      ),
    );
    const verb = h("li", { class: "flow-between", "aria-hidden": "true" }, [
      h("span", { class: "flow-verb" }, stepWords(VERBS[title] ?? "")),
    ]);
    return i ? [verb, chip] : [chip];
  });
}

/**
 * `1 loop`, `2 loops` without the number.
 * @param {string} title
 * @param {string} value
 */
export function one(title, value) {
  return value === "1" ? title.replace(/e?s$/, (end) => (end === "es" && !title.endsWith("ches") ? "e" : "")) : title;
}

/**
 * Counts of one column that no other has: `≠ 5 loops, others 4`.
 * @param {[string, string[]][]} counts
 * @param {number} number of the column
 */
export function otherCounts(counts, number) {
  return counts.flatMap(([title, values]) => {
    const own = values[number];
    const others = new Set(values.filter((_, other) => other !== number));
    if (others.has(own) || others.size === 0) return [];
    return [`≠ ${own} ${one(title, own)}, ${values.length > 2 ? "others" : "the other"} ${[...others].join(", ")}`];
  });
}
