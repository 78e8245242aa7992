// One search over all open panes: what is typed is looked for in each, Enter and `n` go on, `N` goes back.

import { h } from "../dom.js";

export class FindAll {
  /** @param {() => ParentNode[]} frames the open panes */
  constructor(frames) {
    this.frames = frames;
    this.at = -1;
    this.input = h("input", {
      type: "search",
      class: "find-all",
      placeholder: "Find  /",
      "aria-label": "find in all panes",
      autocomplete: "off",
      spellcheck: "false",
    });
    this.element = h("div", { class: "top-find", role: "search", "aria-label": "all panes" }, this.input);
    this.input.addEventListener("input", () => this.search());
    this.input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.step(event.shiftKey ? -1 : 1);
      else if (event.key !== "Escape" || this.input.value === "") return;
      else this.clear();
      event.preventDefault();
    });
  }

  /** The searches of the panes. */
  fields() {
    return this.frames().flatMap(
      (frame) => /** @type {HTMLInputElement[]} */ ([...frame.querySelectorAll("input[type=search]")]),
    );
  }

  search() {
    this.at = -1;
    for (const field of this.fields()) {
      field.value = this.input.value;
      field.dispatchEvent(new Event("input", { bubbles: true }));
    }
  }

  clear() {
    this.input.value = "";
    this.search();
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
