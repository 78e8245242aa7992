// One search over all open panes: what is typed is looked for in each, Enter and `n` go on, `N` goes back.

import { grouped, h, put } from "../dom.js";

export class FindAll {
  /**
   * @param {() => ParentNode[]} frames the open panes
   * @param {() => void} home gives the focus to something of the app, where nothing of it had it before
   * @param {(frame: ParentNode, wanted: string) => string} [why] why there is no match in a pane; "" if that is not known
   */
  constructor(frames, home, why = () => "") {
    this.frames = frames;
    this.home = home;
    this.why = why;
    /** The matches of each field, and whether there are more. @type {Map<EventTarget, [number, boolean]>} */
    this.counts = new Map();
    /** @param {Event} event */
    this.heard = (event) => {
      if (!(event instanceof CustomEvent) || !event.target) return;
      this.counts.set(event.target, event.detail);
      this.tell();
    };
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
    /** Each pane says its count to a screen reader; this is the sum of what is seen. */
    this.total = h("p", { class: "find-total", "aria-hidden": "true", hidden: true });
    this.element = h("div", { class: "top-find", role: "search", "aria-label": "all panes" }, this.input, this.total);
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
    this.counts.clear();
    for (const field of this.fields()) {
      field.addEventListener("found", this.heard);
      field.value = field.matches(".finder-input") ? text : wanted;
      field.dispatchEvent(new Event("input", { bubbles: true }));
    }
    this.tell();
  }

  /** Says how many matches there are in all open panes, and in each. */
  tell() {
    const wanted = this.input.value;
    let total = 0;
    let least = false;
    const parts = this.frames().flatMap((frame) => {
      const known = [...frame.querySelectorAll("input[type=search]")].flatMap((field) => {
        const count = this.counts.get(field);
        return count ? [count] : [];
      });
      if (known.length === 0) return [];
      const count = known.reduce((sum, [one]) => sum + one, 0);
      const more = known.some(([, one]) => one);
      total += count;
      least ||= more;
      const name = frame instanceof Element ? frame.getAttribute("aria-label") : null;
      const why = count ? "" : this.why(frame, wanted);
      return name ? [`${grouped(count)}${more ? "+" : ""} in ${name}${why ? `: ${why}` : ""}`] : [];
    });
    this.total.hidden = wanted === "" || this.counts.size === 0;
    const words = `${grouped(total)}${least ? "+" : ""} found`;
    put(this.total, h("b", {}, words), parts.length > 1 ? ` ${parts.join("; ")}` : "");
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
