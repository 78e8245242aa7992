// The Python functions that were seen, one below the other.

import { flash, h, shortened } from "../dom.js";
import { CompilationTable, notesIn } from "./compilations.js";
import { Finder, copyButton } from "../listing/finder.js";
import { farFrom } from "../listing/visible_lines.js";
import { Listing } from "../listing/listing.js";
import { paperRows } from "../listing/print_rows.js";
import { outdent, setFitting } from "../listing/display.js";

/** @import { App, Marks } from "../data/app.d.ts" */
/** @import { Source } from "../types.d.ts" */

/** Rows that are shown in large letters, in a pane of so many pixels at least. */
const FEW_ROWS = 6;
const ROOMY = 480;

/** With more functions than this there is a list to jump from. */
const MANY_SOURCES = 4;

/** Characters of a name in a heading. */
const HEADING = 80;

export class SourcePane {
  /**
   * @param {App} app
   * @param {[number, number, string, number][]} [own] sources by number, lines of them that another lacks, what is
   *   said, and the character from which on the other's is otherwise
   * @param {(listings: Listing[], width: number) => void} [wrap] breaks lines that are too long; those of several captures
   */
  constructor(app, own = [], wrap = undefined) {
    this.app = app;
    this.wrap = wrap ?? (() => undefined);
    /** True if it is of one capture, whose costs it shows. */
    this.alone = !wrap;
    const { sources } = app.model.core;
    // The program's own functions come first. Where there are none, those of libraries are what is looked at.
    const order = sources
      .map((source, number) => ({ source, number }))
      .sort((one, other) => Number(one.source.library !== "") - Number(other.source.library !== ""));
    this.folding = sources.some(({ library }) => !library);
    /** @type {Map<number, Map<number, string>>} */
    this.signs = new Map();
    /** The first character of each that the other's has otherwise. @type {Map<number, Map<number, number>>} */
    this.unlike = new Map();
    for (const [source, line, words, at] of own) {
      this.signs.set(source, (this.signs.get(source) ?? new Map()).set(line, words));
      this.unlike.set(source, (this.unlike.get(source) ?? new Map()).set(line, at));
    }
    this.scroller = h("div", { class: "source-scroll" });
    /** @type {{ section: HTMLElement, listing: Listing }[]} */
    this.parts = order.map(({ source, number }) => this.part(source, this.signs.get(number)));
    this.table = new CompilationTable(app);
    this.scroller.append(...this.parts.map(({ section }) => section), this.table.element);
    if (sources.length === 0)
      this.scroller.append(h("p", { class: "listing-empty" }, "the record holds no Python source"));
    /** @type {HTMLSelectElement | null} */
    this.list = sources.length > MANY_SOURCES ? this.jumps(order.map(({ source }) => source)) : null;
    this.finder = new Finder(app, () => this.parts.map(({ listing }) => listing));
    this.element = h(
      "div",
      { class: "source-pane" },
      this.list ? h("div", { class: "source-bar" }, this.list) : null,
      this.scroller,
    );
    /** @type {HTMLElement | null} */
    this.tools = this.finder.element;
    this.top = 0;
    this.faulted = false;
    /** The unit that was gone to last, and which of its places. */
    this.more = "";
    this.led = 0;
    this.scroller.addEventListener("scroll", () => this.scrolled(), { passive: true });
  }

  /**
   * @param {Source} source
   * @param {Map<number, string>} [signs]
   */
  part({ file, first, name, ran, share, library, code, items, costs }, signs) {
    /** @type {Map<number, number[]>} */
    const links = new Map();
    for (const [number, item] of items) links.set(number - first + 1, [...(links.get(number - first + 1) ?? []), item]);
    const notes = notesIn(this.app.model.core, { file, first, code });
    const folded = this.folding && library !== "" && !signs && notes.size === 0;
    const label = [[shortened(name, HEADING), ran[0]].filter(Boolean).join(" "), library].join(", ");
    const listing = new Listing(this.app, {
      notes,
      folds: folded ? [{ first: 1, last: code.text.split("\n").length, label }] : [],
      text: code,
      label: `source of ${shortened(name, HEADING)}`,
      first,
      items: links,
      coloured: true,
      calls: true,
      signs,
      costs: this.alone ? new Map(costs.map(([number, ...cost]) => [number - first + 1, cost])) : undefined,
      unlinked: "no tensor operation was recorded for this line",
      viewport: this.scroller,
    });
    outdent(listing);
    const place = `${file.split(/[\\/]/).pop()}:${first}`;
    const section = h(
      "section",
      { class: folded ? "source-part source-library" : "source-part" },
      h(
        "div",
        { class: "source-head" },
        h("h2", { class: "source-name", title: name }, shortened(name, HEADING)),
        ran[0] ? h("span", { class: "source-ran", title: ran[1] }, ran[0]) : null,
        share[0] && this.alone ? h("span", { class: "source-share", title: share[1] }, share[0]) : null,
        h("span", { class: "source-place", title: `${file}:${first}` }, shortened(place, HEADING)),
        copyButton(this.app, () => code.text, `copy the source of ${shortened(name, HEADING)}`),
      ),
      listing.element,
    );
    return { section, listing };
  }

  /**
   * Moves the focus to the next line that broke its graph, or to the next compilation that was made again. False if none
   * is shown.
   * @param {string} more
   */
  next(more) {
    const broken = this.parts.flatMap(({ listing }) =>
      [...listing.notes.all]
        .filter(([, { failed }]) => !failed)
        .map(
          ([line]) =>
            () =>
              listing.goTo(line),
        ),
    );
    const again = this.table.rows.filter((row) => row.querySelector(".compilation-again"));
    const places = more === "break" ? broken : again.map((row) => () => (row.focus(), flash(row)));
    this.led = more === this.more ? this.led + 1 : 0;
    this.more = more;
    places[this.led % places.length]?.();
    return places.length > 0;
  }

  scrolled() {
    if (this.scroller.clientHeight === 0) return;
    this.top = this.scroller.scrollTop;
    if (!this.list) return;
    const below = this.parts.findIndex(({ section }) => section.offsetTop > this.top + 60);
    this.list.value = String((below < 0 ? this.parts.length : below) - 1);
  }

  /**
   * A list of the functions to jump to.
   * @param {Source[]} sources
   */
  jumps(sources) {
    const list = h(
      "select",
      { class: "source-jump", "aria-label": "go to a function" },
      sources.map(({ name, file, first }, i) =>
        h(
          "option",
          { value: String(i) },
          `${shortened(name, 60)} · ${shortened(file.split(/[\\/]/).pop() ?? "", 30)}:${first}`,
        ),
      ),
    );
    list.addEventListener("change", () => {
      const { section } = this.parts[Number(list.value)];
      this.scroller.scrollTop = section.offsetTop;
    });
    return list;
  }

  /** @param {Marks} marks */
  mark(marks) {
    for (const { listing } of this.parts) listing.mark(marks);
  }

  /** @param {number[]} items */
  reveal(items) {
    // The first of the items counts, in whichever function it is.
    return items.some((item) => this.parts.some(({ listing }) => listing.reveal([item])));
  }

  /** @param {number[]} items */
  far(items) {
    return Math.min(...this.parts.map(({ listing }) => farFrom(listing, items)));
  }

  /** Another compilation is shown. */
  recolour() {
    for (const { listing } of this.parts) listing.recolour();
    this.table.choose();
  }

  /** Large letters where few lines are shown and there is room. */
  fit() {
    const rows = this.parts.reduce((sum, { listing }) => sum + listing.lines.count, 0);
    const width = this.scroller.clientWidth;
    if (width === 0 || rows === 0) return;
    const listings = this.parts.map(({ listing }) => listing);
    const least = setFitting(listings, width, rows <= FEW_ROWS && width >= ROOMY);
    this.element.style.setProperty("--least", `${least}px`);
    // It may have become wider by that.
    const { clientWidth } = this.scroller;
    if (clientWidth !== width) setFitting(listings, clientWidth, rows <= FEW_ROWS && clientWidth >= ROOMY);
    this.wrap(listings, clientWidth);
  }

  /** Brings the line where it failed into view, once there is room to be in. */
  showFault() {
    if (this.faulted || this.scroller.clientHeight === 0) return;
    this.faulted = true;
    for (const { section, listing } of this.parts) {
      const [line] = [...listing.notes.all].find(([, { failed }]) => failed) ?? [];
      if (line === undefined) continue;
      const row = listing.folds.row(line - 1);
      const bottom = section.offsetTop + listing.element.offsetTop + listing.rows.top(row + 1);
      if (bottom > this.scroller.clientHeight) this.scroller.scrollTop = bottom - this.scroller.clientHeight + 8;
    }
  }

  paper() {
    const parts = this.parts.flatMap(({ section, listing }) => [
      /** @type {Node} */ (section.firstElementChild).cloneNode(true),
      ...paperRows(listing),
    ]);
    return [...parts, this.table.element.cloneNode(true)];
  }

  resized() {
    this.fit();
    this.showFault();
    if (this.scroller.clientHeight && this.scroller.scrollTop !== this.top) this.scroller.scrollTop = this.top;
    for (const { listing } of this.parts) listing.resized();
  }

  close() {
    this.finder.close();
    for (const { listing } of this.parts) listing.close();
  }
}
