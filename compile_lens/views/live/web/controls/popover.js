// Boxes that open over the panes and cost no height: below a button, closed by Escape, by the button and by a click elsewhere.

import { h } from "../dom.js";

export class Popover {
  /**
   * @param {HTMLElement} opener the button that opens it
   * @param {Element} content
   * @param {{ name: string, right?: boolean, opened?: () => void }} options
   */
  constructor(opener, content, { name, right = false, opened = () => undefined }) {
    this.opener = opener;
    this.opened = opened;
    this.element = h(
      "div",
      { class: right ? "popover popover-right" : "popover", role: "group", "aria-label": name, hidden: true },
      content,
    );
    opener.setAttribute("aria-expanded", "false");
    opener.setAttribute("aria-haspopup", "true");
    opener.addEventListener("click", () => this.set(this.element.hidden === true));
    this.element.addEventListener("keydown", (event) => this.key(event));
    opener.addEventListener("keydown", (event) => this.key(event));
    /** @param {Event} event */
    this.outside = (event) => {
      const path = event.composedPath();
      if (!path.includes(this.element) && !path.includes(this.opener)) this.set(false);
    };
  }

  /** @param {boolean} open */
  set(open) {
    if (open !== (this.element.hidden === true)) return;
    this.element.hidden = !open;
    this.opener.setAttribute("aria-expanded", String(open));
    const root = this.element.getRootNode();
    if (open) {
      root.addEventListener("pointerdown", this.outside);
      this.opened();
    } else {
      root.removeEventListener("pointerdown", this.outside);
    }
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.key !== "Escape" || this.element.hidden) return;
    event.preventDefault();
    this.set(false);
    this.opener.focus();
  }
}
