// The widget of a notebook: the page of a function's capture, and controls for its inputs. Python captures one setting at
// a time, on the thread that runs cells, so the newest waits until the one before is answered.

import { openCompare } from "../compare/page.js";
import { h, put } from "../dom.js";
import { CapturePage, PageState } from "../play/capture_page.js";
import { Controls } from "../play/controls.js";

/** @import { PlayAnswer, WidgetHello, WidgetModel } from "../play/play.d.ts" */

export class Widget {
  /**
   * @param {WidgetModel} model
   * @param {WidgetHello} hello
   * @param {string} inside style of the capture
   */
  constructor(model, hello, inside) {
    this.model = model;
    /** What tells this view of the widget from others: all of them hear every answer. */
    this.view = String(Math.random());
    /** The number of the newest edit, and of the one that Python works on, 0 for none. */
    this.edit = 0;
    this.asked = 0;
    this.editedAt = 0;
    this.page = new CapturePage(inside, false, openCompare);
    this.controls = new Controls(hello, hello.settings, () => this.change());
    this.controls.function.label.hidden = true;
    this.state = h("span", { class: "state", role: "status" });
    this.controls.element.append(h("span", { class: "room" }), this.state);
    this.note = h("p", { class: "stale-note", hidden: true });
    this.element = h(
      "div",
      { class: "play" },
      this.controls.element,
      this.controls.popover.element,
      h("section", { class: "side-page", "aria-label": "capture" }, this.note, this.page.element),
    );
    this.standing = new PageState(this.element);
    this.hear = (/** @type {PlayAnswer} */ answer) => void this.answer(answer);
    model.on("msg:custom", this.hear);
  }

  /** Settings are other ones. */
  change() {
    this.edit++;
    this.editedAt = performance.now();
    this.tell("waits", "capturing …", "Capturing this one.");
    this.ask();
  }

  /** Asks Python for the newest edit, unless it still works on an older one. */
  ask() {
    if (this.asked || !this.edit) return;
    this.asked = this.edit;
    this.model.send({ view: this.view, edit: this.edit, settings: { ...this.controls.settings } });
  }

  /** @param {PlayAnswer} answer */
  async answer(answer) {
    const { view, of, parts, error } = answer;
    if (view !== this.view) return;
    this.asked = 0;
    if (of !== this.edit) this.ask();
    else if (error && !parts) this.tell("failed", error.type || "no capture", error.message);
    else if (parts && (await this.page.show(parts)) && of === this.edit) {
      this.controls.hear(answer);
      this.tell("fresh", `up to date · ${((performance.now() - this.editedAt) / 1000).toFixed(2)} s`, "");
    }
  }

  /**
   * Says how page and settings stand to each other.
   * @param {"fresh" | "waits" | "failed"} state
   * @param {string} words
   * @param {string} reason
   */
  tell(state, words, reason) {
    this.standing.set(state);
    put(this.state, words);
    this.note.hidden = state === "fresh";
    put(this.note, this.page.now ? `Last settings that compiled. ${reason}` : reason);
  }
}
