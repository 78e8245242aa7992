// What the row of a page of captures side by side counts, and the steps between.

import { h } from "../dom.js";
import { one } from "./words.js";

/** @import { Compared, ComparedModule } from "../types.d.ts" */

/** What led from one count to the next. @type {Record<string, string>} */
const VERBS = { loops: "inlined", groups: "fused", kernels: "written", launches: "called" };

/**
 * @param {Compared} compared
 * @param {ComparedModule | undefined} now
 */
export function stepsOf({ same: two, columns }, now) {
  const [between, of] = two ? [" → ", ""] : [" · ", `: ${columns.map(({ target }) => target).join(" · ")}`];
  return (now?.counts ?? []).flatMap(([title, values], i) => {
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
      h("span", { class: "flow-verb" }, [
        h("span", { class: "flow-name" }, VERBS[title] ?? ""),
        h("span", { class: "flow-arrow" }),
      ]),
    ]);
    return i ? [verb, chip] : [chip];
  });
}
