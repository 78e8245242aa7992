// One search over all open panes: what is typed is looked for in each, Enter and `n` go on, `N` goes back.

import { h } from "../dom.js";

/** @import { FindTotal } from "../code/additions.js" */

export class FindAll {
  /**
   * @param {() => ParentNode[]} frames the open panes
   * @param {() => void} home gives the focus to something of the app, where nothing of it had it before
   * @param {FindTotal} [total] the sum of what is found
   */
  constructor(frames, home, total) {
    this.frames = frames;
    this.home = home;
    this.total = total;
    /** The element that had the focus before. @type {EventTarget | null} */
    this.before = null;
    this.at = -1;
    this.input = h("input", {
      type: "search",
      class: "find-all",
      placeholder: "Find  /",
      "aria-label": "find in all panes",
      autocomplete: "off",
      spellcheck: "false",
    });
    this.element = h(
      "div",
      { class: "top-find", role: "search", "aria-label": "all panes" },
      this.input,
      total?.element,
    );
    this.input.addEventListener("input", () => this.search());
    this.input.addEventListener("focus", (event) => (this.before = event.relatedTarget));
    this.input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.step(event.shiftKey ? -1 : 1);
      else if (event.key !== "Escape") return;
      // The first Escape empties the field, the next one leaves it.
      else if (this.input.value) this.clear();
      else this.leave();
      event.preventDefault();
    });
  }

  /** The letters that lead to it and through what it finds. */
  get letters() {
    return { "/": () => this.input.focus(), n: () => this.step(1), N: () => this.step(-1) };
  }

  /** The searches of the panes. */
  fields() {
    return this.frames().flatMap(
      (frame) => /** @type {HTMLInputElement[]} */ ([...frame.querySelectorAll("input[type=search]")]),
    );
  }

  search() {
    this.at = -1;
    const wanted = this.input.value;
    // What only graphs know is not looked for in texts.
    const text = wanted.replace(/^op: *|^(shape|module|dtype):.*/i, "");
    const fields = this.fields();
    this.total?.begin(wanted, fields);
    for (const field of fields) {
      field.value = field.matches(".finder-input") ? text : wanted;
      field.dispatchEvent(new Event("input", { bubbles: true }));
    }
  }

  clear() {
    this.input.value = "";
    this.search();
  }

  leave() {
    const { before } = this;
    const there = before instanceof HTMLElement || before instanceof SVGElement;
    if (there && before.getRootNode() === this.input.getRootNode() && before.checkVisibility())
      before.focus({ preventScroll: true });
    else this.home();
  }

  /**
   * Goes to the next match of each pane.
   * @param {number} by 1 or -1
   */
  step(by) {
    if (this.input.value === "") return;
    for (const field of this.fields())
      field.dispatchEvent(
        new KeyboardEvent("keydown", { key: "Enter", shiftKey: by < 0, bubbles: true, cancelable: true }),
      );
  }
}
