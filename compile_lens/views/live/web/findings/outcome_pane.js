// The outcome of a capture that did not go well: the message of torch or the program, or why nothing was compiled.

import { copyButton } from "../listing/finder.js";
import { button, h, linked, put } from "../dom.js";

/** @import { App, Pane } from "../data/app.d.ts" */
/** @import { Core } from "../types.d.ts" */

/**
 * True if there is something to say: it failed, or nothing was compiled.
 * @param {Core} core
 */
export function endedBadly({ outcome }) {
  return outcome.failure !== null || outcome.state === "nothing";
}

/** @implements {Pane} */
export class OutcomePane {
  /** @param {App} app */
  constructor(app) {
    const { failure } = app.model.core.outcome;
    this.core = app.model.core;
    this.traced = false;
    this.body = h("div", { class: "outcome-body" });
    this.element = h("div", { class: "outcome" }, this.body);
    /** @type {HTMLElement | null} */
    this.tools = failure
      ? h(
          "div",
          { class: "listing-tools" },
          failure.traceback ? this.switch() : null,
          copyButton(app, () => (this.traced ? failure.traceback : failure.message), "copy it"),
        )
      : null;
    this.show();
  }

  /** The button that switches between the message and the whole traceback. */
  switch() {
    const toggle = button("traceback", () => {
      this.traced = !this.traced;
      toggle.setAttribute("aria-pressed", String(this.traced));
      this.show();
    });
    toggle.setAttribute("aria-pressed", "false");
    return toggle;
  }

  show() {
    const { failure, verdict, below } = this.core.outcome;
    const message = failure && (this.traced ? failure.traceback : failure.message.trimEnd());
    const label = this.traced ? "traceback" : "message of the failure";
    put(
      this.body,
      // The head of the pane says already that nothing was compiled.
      h(
        "p",
        { class: failure ? "outcome-verdict failed" : "outcome-verdict" },
        verdict.replace(/^nothing was compiled: /, ""),
      ),
      message
        ? h("pre", { class: "outcome-said", tabindex: "0", role: "group", "aria-label": label }, linked(message))
        : h("p", {}, below),
      failure ? null : this.eager(),
    );
  }

  /** The parts that Python ran instead, and why. */
  eager() {
    const { eager, outcome } = this.core;
    if (eager.length === 0) return null;
    return h(
      "ul",
      {},
      eager.map(({ head, whole, what, why, hint }) =>
        h(
          "li",
          {},
          h("b", {}, head),
          what && outcome.verdict.includes(what)
            ? null
            : h("p", {}, linked(whole || [what, why].filter(Boolean).join(" "))),
          hint ? h("p", {}, hint) : null,
        ),
      ),
    );
  }
}
