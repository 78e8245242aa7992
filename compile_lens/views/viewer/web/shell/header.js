// The head of the page: what was captured, where and how, how it ended, and what it saved.

import { grouped, h, shortened } from "../dom.js";

/** @import { Core } from "../types.d.ts" */

/**
 * @param {Core} core
 * @returns {HTMLElement}
 */
export function pageHeader(core) {
  const { state, verdict } = core.outcome;
  return h(
    "header",
    { class: "top" },
    h(
      "div",
      { class: "top-row" },
      h(
        "div",
        { class: "top-name", role: "heading", "aria-level": "2", title: core.title },
        shortened(core.function, 160),
      ),
      h(
        "p",
        { class: `top-verdict state-${state}` },
        h("span", { class: "top-state", "aria-hidden": "true" }),
        h("span", {}, verdict),
      ),
      savingTiles(core),
    ),
    h(
      "div",
      { class: "top-row top-facts" },
      core.stamp ? h("span", { class: "fact fact-strong" }, `code ${core.stamp}`) : null,
      core.asked ? h("span", { class: "fact fact-strong" }, `options: ${core.asked}`) : null,
      core.environment.map((fact) => h("span", { class: "fact" }, fact)),
      core.created ? h("time", { class: "fact", datetime: core.created }, core.created) : null,
      inputList(core),
    ),
    outcomeDetail(core),
    eagerList(core),
  );
}

/**
 * What Python ran in place of compiled code, a line each; the sections below say why.
 * @param {Core} core
 */
function eagerList({ eager }) {
  if (eager.length === 0) return null;
  return h(
    "details",
    { class: "top-nothing top-eager", open: eager.length < 4 },
    h("summary", {}, eager.length === 1 ? "1 place ran eagerly" : `${grouped(eager.length)} places ran eagerly`),
    h(
      "ul",
      {},
      eager.map(({ head, what, frames }) =>
        h("li", {}, h("b", {}, `${head}: `), what, frames.length ? ` (${frames[frames.length - 1]})` : ""),
      ),
    ),
  );
}

/** @param {Core} core */
function savingTiles(core) {
  if (core.savings.length === 0) return null;
  return h(
    "div",
    { class: "top-savings" },
    core.savings.map(([what, before, after]) => {
      const modelled = before.startsWith("~") || after.startsWith("~");
      return h(
        "div",
        { class: "saving" },
        h(
          "span",
          { class: "saving-figures" },
          before,
          before === "" ? null : h("span", { class: "saving-arrow" }, " → "),
          h("b", {}, after),
        ),
        h("span", { class: "saving-what" }, modelled ? `${what}, modelled` : what),
      );
    }),
  );
}

/** @param {Core} core */
function inputList(core) {
  const { inputs } = core;
  if (inputs.length === 0) return h("span", { class: "fact" }, "no inputs");
  return h(
    "details",
    { class: "top-inputs" },
    h("summary", {}, inputs.length === 1 ? "1 input" : `${grouped(inputs.length)} inputs`),
    h(
      "ul",
      {},
      inputs.map((input) => h("li", {}, input)),
    ),
  );
}

/**
 * What a failure said, or what it means that nothing was compiled.
 * @param {Core} core
 */
function outcomeDetail(core) {
  const { failure, below } = core.outcome;
  if (failure) {
    return h(
      "div",
      { class: "top-failure" },
      h(
        "pre",
        { class: "top-message", tabindex: "0", role: "group", "aria-label": "message of the failure" },
        failure.message.trimEnd(),
      ),
      failure.traceback
        ? h(
            "details",
            {},
            h("summary", {}, "traceback"),
            h(
              "pre",
              { class: "top-traceback", tabindex: "0", role: "group", "aria-label": "traceback" },
              failure.traceback,
            ),
          )
        : null,
      below ? h("p", {}, below) : null,
    );
  }
  return below ? h("p", { class: "top-nothing" }, below) : null;
}
