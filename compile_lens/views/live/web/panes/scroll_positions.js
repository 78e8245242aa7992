// The scroll positions in a pane: an element that leaves the page forgets its own.

export class Scrolls {
  /** @param {Element} body of the pane */
  constructor(body) {
    this.body = body;
    /** Elements that were ever scrolled: thousands of elements need not be asked. @type {Set<Element>} */
    this.scrolled = new Set();
    /** @type {[Element, number, number][]} */
    this.kept = [];
    const note = (/** @type {Event} */ { target }) => target instanceof Element && this.scrolled.add(target);
    body.addEventListener("scroll", note, { capture: true, passive: true });
  }

  /** Notes it for all that is in the pane now. */
  keep() {
    this.kept = this.kept.filter(([element]) => !this.body.contains(element));
    for (const element of this.scrolled) {
      if (this.body.contains(element) && (element.scrollTop || element.scrollLeft))
        this.kept.push([element, element.scrollTop, element.scrollLeft]);
    }
  }

  restore() {
    for (const [element, top, left] of this.kept) {
      // A listing knows better: with other room its lines are read from their start.
      if (this.body.contains(element) && !element.matches(".listing-box"))
        element.scrollTo({ top, left, behavior: "instant" });
    }
  }
}
