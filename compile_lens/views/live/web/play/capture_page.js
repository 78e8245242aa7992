// The page of the last program that compiled, for one target or two. A new one takes its place with what was open, pinned and scrolled.

import { followPointer } from "../controls/pointer.js";
import { h } from "../dom.js";
import { openCapture } from "../shell/main.js";
import { lookOf } from "../data/units.js";
import { traceOver } from "./traced_graphs.js";
import { foldsOf, placesOf, scrolledIn, scrollTo, takeOverCapture, takeOverCompare } from "./take_over.js";

/** @import { EditorLine } from "./play.d.ts" */
/** @import { openCompare } from "../compare/page.js" */
/** @import { ComparePage, Place, Shell } from "./take_over.js" */
/** @import { TracedGraphs } from "./traced_graphs.js" */

/** Milliseconds until a page that waits is dimmed: a capture of a moment shall not flash, and each change is a page to draw. */
const MOMENT = 300;

/** How a page stands to what is in the editor: fresh, or dimmed. */
export class PageState {
  /** @param {HTMLElement} element what says it to the style */
  constructor(element) {
    this.element = element;
    this.timer = 0;
  }

  /** @param {"fresh" | "waits" | "lowering" | "failed"} state */
  set(state) {
    const { classList, dataset } = this.element;
    dataset.state = state;
    if (state === "waits") {
      // A transition with a delay would have each frame until then drawn anew.
      this.timer ||= setTimeout(() => classList.add("play-stale"), MOMENT);
      return;
    }
    clearTimeout(this.timer);
    this.timer = 0;
    classList.toggle("play-stale", state === "failed");
  }
}

export class CapturePage {
  /**
   * @param {string} style of the inside
   * @param {boolean} edited whether the program stands beside it
   * @param {typeof openCompare} [compare] opens pages of two targets, where there are some
   */
  constructor(style, edited, compare) {
    this.compare = compare;
    this.edited = edited;
    this.sheet = new CSSStyleSheet();
    this.sheet.replaceSync(style);
    this.element = h("div", { class: "pages" });
    /** @type {{ host: HTMLElement, page: Shell | ComparePage, places: () => Place[] } | null} */
    this.now = null;
    /** The number of the newest page: an older one that is still being made is not shown. */
    this.newest = 0;
    /** Graphs of a program that is being lowered. @type {TracedGraphs | null} */
    this.traced = null;
  }

  /**
   * Shows the graphs of a program that is being lowered, and dims what is not of it. True once they are painted; false if
   * no graph of its kind is shown, or a page came before.
   * @param {Record<string, string>} parts JSON by name
   * @param {() => boolean} wanted whether they still are
   */
  async showTraced(parts, wanted) {
    const { newest, now } = this;
    if (!now || !("panes" in now.page)) return false;
    const traced = await traceOver(parts, now.page, wanted);
    if (newest !== this.newest || !wanted() || !traced.frames.length) {
      traced.remove();
      return false;
    }
    this.dropTraced();
    this.traced = traced;
    traced.show();
    now.host.classList.add("page-lowering");
    await painted();
    return newest === this.newest && wanted();
  }

  /** Takes away graphs of a program that did not become a page. */
  dropTraced() {
    this.traced?.remove();
    this.traced = null;
    this.now?.host.classList.remove("page-lowering");
  }

  /**
   * Shows the page of these parts. True once it is painted, false if a newer one came before.
   * @param {Record<string, string>} parts JSON by name
   */
  async show(parts) {
    const number = ++this.newest;
    const host = h("div", { class: "page page-waits" });
    const shadow = host.attachShadow({ mode: "open" });
    shadow.adoptedStyleSheets = [this.sheet];
    this.element.append(host);
    const open = ("comparison" in parts && this.compare) || openCapture;
    const page = await open(host, parts, (text) => Promise.resolve(text), false);
    const stay = () => number === this.newest;
    let places = () => placesOf(page);
    if (stay()) {
      if ("app" in page) page.app.edited = this.edited;
      page.element.classList.add("shell-beside", ...(this.edited ? ["shell-edited"] : []));
      shadow.append(page.element);
      followPointer(host, shadow);
      page.begin();
      places = await this.takeOver(page);
    }
    if (!stay()) {
      host.remove();
      return false;
    }
    const old = this.now;
    host.classList.remove("page-waits");
    if (old) {
      host.scrollTop = old.host.scrollTop;
      old.host.remove();
    }
    this.now = { host, page, places };
    this.dropTraced();
    await painted();
    return stay();
  }

  /**
   * Brings a new page into the state of the one that is shown. Returns the places that it scrolls in.
   * @param {Shell | ComparePage} page
   */
  async takeOver(page) {
    const old = this.now;
    await ("panes" in page ? takeOverCapture(page, old?.page) : takeOverCompare(page, old?.page));
    const own = "panes" in page ? null : placesOf(page);
    const places = () => own ?? placesOf(page);
    if (old) {
      const folds = foldsOf(old.page.element);
      for (const [name, fold] of foldsOf(page.element)) fold.open = folds.get(name)?.open ?? fold.open;
      if ("panes" in page === "panes" in old.page) for (const one of scrolledIn(old.places())) scrollTo(places(), one);
    }
    return places;
  }

  /** The capture whose lines are those of the editor: of two that of the first which compiled. */
  get capture() {
    const page = this.now?.page;
    return page && ("app" in page ? page : page.there[0]);
  }

  /**
   * What has a colour in a file: each call that became a part of the graph, or the line of it.
   * @param {string} file its name
   * @param {string[]} text its lines
   * @param {Pick<Shell, "model" | "app"> | undefined} [capture]
   * @returns {EditorLine[]}
   */
  lines(file, text, capture = this.capture) {
    if (!capture) return [];
    const { model, app } = capture;
    return linesOf(model, file).flatMap(({ line, item, written }) => {
      const units = model.units.of(item, app.compilation);
      const look = (/** @type {number} */ unit) => lookOf(model.units.all[unit]);
      const calls = model.units.segments(units);
      const shift = indent(text[line - 1] ?? "") - indent(written);
      return calls.length
        ? calls.map(({ start, end, unit }) => ({ line, start: start + shift, end: end + shift, classes: look(unit) }))
        : units.slice(0, 1).map((unit) => ({ line, start: 0, end: -1, classes: look(unit) }));
    });
  }

  /**
   * Pins a line of a file, or takes its pin out. False if nothing came of the line.
   * @param {string} file
   * @param {number} line
   */
  pin(file, line) {
    if (!this.capture) return false;
    const { app, model } = this.capture;
    const items = linesOf(model, file).flatMap((one) => (one.line === line ? [one.item] : []));
    if (items.length === 0) return false;
    app.selection.toggle(items, `${file}:${line}`);
    return true;
  }
}

/** Waits until what was changed is seen. */
function painted() {
  return new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
}

/**
 * Lines of a file that became something: their numbers, items and texts as the capture has them.
 * @param {Shell["model"]} model
 * @param {string} file its name
 */
function linesOf(model, file) {
  const own = model.core.sources.filter((source) => source.file.split(/[\\/]/).pop() === file);
  return own.flatMap(({ items, first, code }) => {
    const texts = code.text.split("\n");
    return items.map(([line, item]) => ({ line, item, written: texts[line - first] ?? "" }));
  });
}

/** Characters before the first that is seen. @param {string} text */
function indent(text) {
  return text.length - text.trimStart().length;
}
