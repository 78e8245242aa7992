// The page of the last program that compiled. A new one takes its place with what was open, pinned and scrolled.

import { followPointer } from "../controls/pointer.js";
import { h } from "../dom.js";
import { openCapture } from "../shell/main.js";
import { decodeState } from "../shell/permalink.js";
import { lookOf } from "../data/units.js";

/** @import { EditorLine } from "./play.d.ts" */
/** @typedef {Awaited<ReturnType<typeof openCapture>>} Shell */
/** @typedef {{ key: string, name: string, number: number, top: number, left: number }} Scrolled */

/** Milliseconds for which the panes of a new page may keep it waiting. */
const PATIENCE = 1500;

export class CapturePage {
  /**
   * @param {string} style of the inside
   * @param {boolean} edited whether the program stands beside it
   */
  constructor(style, edited) {
    this.edited = edited;
    this.sheet = new CSSStyleSheet();
    this.sheet.replaceSync(style);
    this.element = h("div", { class: "pages" });
    /** @type {{ host: HTMLElement, shell: Shell } | null} */
    this.now = null;
    /** The number of the newest page: an older one that is still being made is not shown. */
    this.newest = 0;
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
    const shell = await openCapture(host, parts, (text) => Promise.resolve(text), false);
    shell.app.edited = this.edited;
    const stay = () => number === this.newest;
    if (stay()) {
      shell.element.classList.add("shell-beside");
      shadow.append(shell.element);
      followPointer(host, shadow);
      shell.begin();
      await this.takeOver(shell);
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
    this.now = { host, shell };
    await new Promise((painted) => requestAnimationFrame(() => setTimeout(painted)));
    return stay();
  }

  /** Brings a new page into the state of the one that is shown. @param {Shell} shell */
  async takeOver(shell) {
    const old = this.now?.shell;
    if (old) {
      const { panes } = shell;
      for (const [key, share] of old.panes.shares) panes.shares.set(key, share);
      panes.large = old.panes.large;
      const state = decodeState(old.hash(), shell.model.index, shell.findings());
      if (state) shell.restore(state);
      // Usual panes have no place in an address, and yet a view that was chosen: they have not read their data yet.
      for (const { place, view } of old.panes.shown) {
        const frame = panes.frames.get(place.key);
        if (frame && view) frame.view = view;
      }
      const folds = foldsOf(old);
      for (const [name, fold] of foldsOf(shell)) fold.open = folds.get(name)?.open ?? fold.open;
    }
    const ready = Promise.all(shell.panes.shown.map((frame) => frame.ready));
    await Promise.race([ready, new Promise((late) => setTimeout(late, PATIENCE))]);
    if (old) for (const one of scrolledIn(old)) scrollTo(shell, one);
  }

  /**
   * What has a colour in a file: each call that became a part of the graph, or the line of it.
   * @param {string} file its name
   * @param {string[]} text its lines
   * @returns {EditorLine[]}
   */
  lines(file, text) {
    if (!this.now) return [];
    const { model, compilation } = this.now.shell;
    return linesOf(model, file).flatMap(({ line, item, written }) => {
      const units = model.units.of(item, compilation);
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
    if (!this.now) return false;
    const { app, model } = this.now.shell;
    const items = linesOf(model, file).flatMap((one) => (one.line === line ? [one.item] : []));
    if (items.length === 0) return false;
    app.selection.toggle(items, `${file}:${line}`);
    return true;
  }
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

/** Sections that fold, by what stands in their head. @param {Shell} shell @returns {Map<string, HTMLDetailsElement>} */
function foldsOf(shell) {
  const folds = [...shell.element.querySelectorAll("details")];
  return new Map(folds.map((fold) => [fold.querySelector("summary")?.textContent ?? "", fold]));
}

/** Everything that is scrolled in the panes of a page. @param {Shell} shell @returns {Scrolled[]} */
function scrolledIn(shell) {
  return shell.panes.shown.flatMap(({ place, body, scrolls }) =>
    [...scrolls.scrolled]
      .filter((element) => body.contains(element) && (element.scrollTop || element.scrollLeft))
      .map((element) => {
        const name = element.classList[0] ?? "";
        const number = [...body.querySelectorAll(`.${name}`)].indexOf(element);
        return { key: place.key, name, number, top: element.scrollTop, left: element.scrollLeft };
      }),
  );
}

/**
 * @param {Shell} shell
 * @param {Scrolled} scrolled
 */
function scrollTo(shell, { key, name, number, top, left }) {
  const frame = shell.panes.shown.find(({ place }) => place.key === key);
  frame?.body.querySelectorAll(`.${name}`)[number]?.scrollTo({ top, left, behavior: "instant" });
}
