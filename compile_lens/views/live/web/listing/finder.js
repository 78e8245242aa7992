// The search box of listings, and the button that copies a text.

import { button, copied, grouped, h, put } from "../dom.js";

/** @import { App } from "../data/app.d.ts" */
/** @import { Listing } from "./listing.js" */

/** Milliseconds without a key after which the search begins; how long "copied" stands. */
const REST = { typing: 120, copied: 1500 };

/** Finds a text in one listing or in several below each other. */
export class Finder {
  /**
   * @param {App} app
   * @param {() => Listing[]} listings those that are shown now, in order
   * @param {{ find: (wanted: string) => number, show: (match: number) => void }} [names] what is searched after them
   */
  constructor(app, listings, names = { find: () => 0, show: () => undefined }) {
    this.app = app;
    this.listings = listings;
    this.names = names;
    /** Listings with marked matches, and the number of each. @type {{ listing: Listing, count: number }[]} */
    this.searched = [];
    this.total = 0;
    this.more = false;
    this.current = -1;
    this.timer = 0;
    /** The folds that were open before the search; null while nothing is looked for. @type {Map<Listing, boolean[]> | null} */
    this.before = null;
    this.input = h("input", {
      type: "search",
      class: "finder-input",
      placeholder: "find",
      "aria-label": "find in this text",
      spellcheck: "false",
      autocomplete: "off",
    });
    this.count = h("span", { class: "finder-count", "aria-hidden": "true" });
    this.previous = button("↑", () => this.step(-1), { label: "previous match", class: "button finder-step" });
    this.next = button("↓", () => this.step(1), { label: "next match", class: "button finder-step" });
    this.element = h("div", { class: "finder" }, this.input, this.count, this.previous, this.next);
    this.input.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.search(true), REST.typing);
    });
    this.input.addEventListener("keydown", (event) => this.key(event));
    this.tell();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.key === "Enter") {
      if (this.timer) this.search(true);
      else this.step(event.shiftKey ? -1 : 1);
      event.preventDefault();
    } else if (event.key === "Escape") {
      // The first Escape empties the box; the next one leads to the text.
      if (this.input.value) {
        this.input.value = "";
        this.search(true);
      } else {
        const [listing] = this.listings();
        listing?.rows.focus(listing.rows.active);
      }
      event.preventDefault();
      event.stopPropagation();
    }
  }

  /**
   * Searches what is shown now.
   * @param {boolean} show whether to bring a match into view
   */
  search(show) {
    clearTimeout(this.timer);
    this.timer = 0;
    const wanted = this.input.value;
    if (wanted) this.before ??= new Map(this.listings().map((listing) => [listing, [...listing.folds.open]]));
    for (const { listing } of this.searched) listing.find("");
    this.searched = [];
    this.total = 0;
    this.more = false;
    this.current = -1;
    if (wanted) {
      for (const listing of this.listings()) {
        const { count, more } = listing.find(wanted);
        this.searched.push({ listing, count });
        this.total += count;
        this.more ||= more;
      }
    }
    this.total += this.names.find(wanted);
    if (!wanted) this.restore();
    if (show && this.total) this.go(this.firstInView());
    this.tell();
    if (show && wanted) this.app.say(this.total ? `${this.words()} matches` : "no match");
  }

  /** Closes the folds that were opened for a match. */
  restore() {
    for (const [listing, before] of this.before ?? []) {
      const { folds, rows } = listing;
      const opened = before.flatMap((open, fold) => (!open && folds.open[fold] ? [fold] : []));
      if (opened.length === 0) continue;
      for (const fold of opened) folds.set(fold, false);
      rows.active = Math.min(rows.active, folds.rows - 1);
      rows.arrange();
      listing.shade();
    }
    this.before = null;
  }

  firstInView() {
    let before = 0;
    for (const { listing, count } of this.searched) {
      if (count) return before + listing.matchInView();
      before += count;
    }
    return 0;
  }

  /** @param {number} by */
  step(by) {
    if (this.total === 0) return;
    this.go((this.current + by + this.total) % this.total);
    this.tell();
    this.app.say(`match ${this.current + 1} of ${this.words()}`);
  }

  /** @param {number} match */
  go(match) {
    this.current = match;
    let before = 0;
    for (const { listing, count } of this.searched) {
      const own = match - before;
      listing.showMatch(own >= 0 && own < count ? own : -1);
      before += count;
    }
    this.names.show(match - before);
  }

  /** The number of matches. */
  words() {
    return `${grouped(this.total)}${this.more ? "+" : ""}`;
  }

  tell() {
    const status = !this.input.value ? "" : this.total ? `${grouped(this.current + 1)}/${this.words()}` : "no match";
    put(this.count, status);
    this.element.classList.toggle("nothing", status === "no match");
    this.previous.disabled = this.next.disabled = this.total === 0;
    this.input.dispatchEvent(new CustomEvent("found", { detail: [this.total, this.more] }));
  }

  close() {
    clearTimeout(this.timer);
  }
}

/**
 * A button that copies a text and says so.
 * @param {App} app
 * @param {() => string} text
 * @param {string} [label] what is copied
 */
export function copyButton(app, text, label = "copy this text") {
  const copier = button("copy", () => void act(), { class: "button copy-button" });
  copier.title = label;
  copier.setAttribute("aria-label", label);
  const act = async () => {
    const done = await copied(text(), copier);
    const sentence = done ? "copied" : "not copied: the browser does not allow it";
    app.say(sentence);
    put(copier, done ? "copied" : "refused");
    setTimeout(() => put(copier, "copy"), REST.copied);
  };
  return copier;
}
