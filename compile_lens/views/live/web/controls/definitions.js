// What a step, a stage or a column means, in a sentence beside it: with the focus of a keyboard, and under a finger. A
// pointer that hovers has the tooltip.

import { h } from "../dom.js";

/** Pixels between the sentence and what it is about, and to the edges of the host. */
const GAP = 6;

export class Definitions {
  /** @param {HTMLElement} host what it stands in, whose elements with `data-means` have a sentence */
  constructor(host) {
    this.host = host;
    /** The words are the title of the element that has the focus: who listens has heard them. */
    this.element = h("p", { class: "definition", hidden: true, "aria-hidden": "true" });
    host.append(this.element);
    host.addEventListener("focusin", ({ target }) => {
      const keyboard = target instanceof Element && target.matches(":focus-visible");
      this.show(keyboard ? target : null);
    });
    host.addEventListener("focusout", () => this.show(null));
    host.addEventListener("click", (event) => {
      const finger = event instanceof PointerEvent && event.pointerType === "touch";
      if (finger && event.target instanceof Element) this.show(event.target);
    });
    host.addEventListener("keydown", ({ key }) => key === "Escape" && this.show(null));
    host.addEventListener("scroll", () => this.show(null), { capture: true, passive: true });
  }

  /** @param {Element | null} target */
  show(target) {
    const about = target?.closest("[data-means]");
    this.element.hidden = !about;
    if (!about) return;
    this.element.textContent = about.getAttribute("data-means");
    const [own, host] = [about, this.host].map((element) => element.getBoundingClientRect());
    const { offsetWidth, offsetHeight } = this.element;
    const left = Math.max(GAP, Math.min(own.left - host.left, host.width - offsetWidth - GAP));
    const below = own.bottom - host.top + GAP;
    const fits = own.bottom + GAP + offsetHeight <= window.innerHeight;
    this.element.style.left = `${left}px`;
    this.element.style.top = `${fits ? below : own.top - host.top - offsetHeight - GAP}px`;
  }
}
