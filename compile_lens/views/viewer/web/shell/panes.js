// The row of panes: which are open, how wide and how high they are, and what each shows of the selection.

import { Reach } from "../data/reasons.js";
import { h, put } from "../dom.js";
import {
  carriedOver,
  inPhase,
  LEAST_WIDTH,
  PHONE_WIDTH,
  placeOf,
  roomFor,
  sharesMoved,
  sideBySide,
  sourceHeight,
  usualPlaces,
  withPlace,
} from "./arrangement.js";
import { firstLook } from "./first_look.js";
import { PaneFrame } from "./pane_frame.js";
import { separator } from "./resizer.js";

/** @import { App } from "../data/app.d.ts" */
/** @import { Place } from "./arrangement.js" */

/** Frames that are kept, with what they have read and drawn, whether they are open or not. */
const MOST_KEPT = 12;
/** Lines of a source below which there is room for the graph, and the width from which three long panes fit. */
const SHORT_SOURCE = 12;
const WIDE = 1100;
/** Pixels of height: what a row keeps, and what it may get. */
const LEAST_HEIGHT = 200;
const MOST_HEIGHT = 4000;

export class Panes {
  /**
   * @param {App} app
   * @param {{ changed: () => void, closed: (key: string) => void }} tell
   */
  constructor(app, tell) {
    this.app = app;
    this.tell = tell;
    /** Most recently used first. @type {Place[]} */
    this.open = [];
    /** @type {Map<string, PaneFrame>} */
    this.frames = new Map();
    /** Parts of the width, by key; 1 where nobody moved a border. @type {Map<string, number>} */
    this.shares = new Map();
    /** Frames side by side, left to right. @type {PaneFrame[]} */
    this.shown = [];
    this.width = 0;
    this.compilation = 0;
    /** The phase that was chosen; "" for the first. */
    this.phase = "";
    /** Whether anyone chose panes; before that they follow the width. */
    this.chosen = false;
    this.pins = app.selection.pins.length;
    /** The chain of the last pin. @type {Reach | null} */
    this.reach = null;
    this.row = h("div", { class: app.model.core.compilations.length ? "panes-row" : "panes-row panes-short" });
    this.empty = h("p", { class: "panes-empty" }, "Choose a stage above to open it here.");
    this.border = this.rowBorder();
    this.element = h("div", { class: "panes" }, this.row, this.border.element);
  }

  /**
   * Opens what is usual for a compilation, or what stands for the panes of the one before.
   * @param {number} compilation
   */
  choose(compilation) {
    const from = this.compilation;
    this.compilation = compilation;
    for (const frame of this.frames.values()) frame.recolour();
    if (this.chosen && from !== compilation) {
      this.open = carriedOver(this.open, this.app.model.index.stages, from, compilation);
      if (this.open.every((place) => place.stage === 0)) this.chosen = false;
    }
    if (!this.chosen) this.open = this.usual();
    this.arrange();
  }

  /**
   * Shows another phase: each stage of the one before gives way to its like.
   * @param {string} phase
   */
  choosePhase(phase) {
    this.phase = phase;
    this.open = this.chosen ? inPhase(this.open, this.app.model.index.stages, phase) : this.usual();
    this.arrange();
  }

  /** Whether the graph stands below the source: where that is short, and where three would be too narrow. */
  get below() {
    const { sources } = this.app.model.core;
    return sources.length > 0 && (this.lines() <= SHORT_SOURCE || (this.width > 0 && this.width < WIDE));
  }

  /** Lines of all functions. */
  lines() {
    return this.app.model.core.sources.reduce((sum, { code }) => sum + code.text.trimEnd().split("\n").length, 0);
  }

  /** Puts the usual panes where they tell most; others stand side by side and share the room. */
  lay() {
    const [source, graph, code, more] = this.shown.map((frame) => frame.place);
    const { model } = this.app;
    const usual =
      !this.chosen &&
      !more &&
      code !== undefined &&
      source.stage === 0 &&
      !model.isCode(graph.stage) &&
      model.isCode(code.stage);
    const stacked = usual && this.below && this.width >= PHONE_WIDTH;
    this.row.classList.toggle("panes-stacked", stacked);
    this.row.classList.toggle("panes-usual", usual && !stacked && this.width >= WIDE);
    const { compilations, sources } = model.core;
    const most = compilations.length > 1 ? "62%" : "50%";
    const height = sourceHeight(this.lines(), sources.length, compilations.length);
    this.row.style.setProperty("--source", `min(${height}px, ${most})`);
  }

  /** Whoever moves a border decides: what the panes have now are their shares. */
  settle() {
    if (!this.row.matches(".panes-stacked, .panes-usual")) return;
    const widths = this.shown.map((frame) => frame.element.offsetWidth);
    this.chosen = true;
    this.row.classList.remove("panes-stacked", "panes-usual");
    this.shown.forEach((frame, i) => {
      this.shares.set(frame.place.key, widths[i]);
      frame.element.style.flexGrow = String(widths[i]);
    });
    for (const frame of this.shown) frame.resized();
  }

  /** Shows what is usual again. */
  unchoose() {
    if (!this.chosen) return;
    this.chosen = false;
    this.choose(this.compilation);
  }

  usual() {
    const { core, index } = this.app.model;
    const python = core.sources.length > 0 || index.stages[0].count > 0;
    return usualPlaces(core.compilations[this.compilation], this.width, python, this.below, this.phase);
  }

  /**
   * Opens exactly these panes, the first ones first where there is no room for all.
   * @param {{ place: Place, view: string }[]} panes
   */
  restore(panes) {
    this.chosen = true;
    this.open = panes.map(({ place }) => place);
    for (const { place, view } of panes) {
      const frame = this.frame(place, view);
      if (view) frame.show(view);
    }
    this.arrange();
  }

  /**
   * Opens a pane or closes it.
   * @param {Place} place
   */
  toggle(place) {
    if (this.shown.some((frame) => frame.place.key === place.key)) this.close(place.key);
    else this.show(place);
  }

  /** @param {Place} place */
  show(place) {
    this.chosen = true;
    this.open = withPlace(this.open, place, roomFor(this.width));
    this.arrange();
    this.app.say(`opened ${this.frame(place, "").title}`);
  }

  /** @param {string} key */
  close(key) {
    this.chosen = true;
    this.open = this.open.filter((place) => place.key !== key);
    const frame = this.frames.get(key);
    this.arrange();
    if (frame) this.app.say(`closed ${frame.title}`);
  }

  /**
   * Opens the pane of a stage if it is not open, and brings items into view there.
   * @param {number} stage
   * @param {number[]} items
   */
  async reveal(stage, items) {
    const place = placeOf(stage);
    if (this.shown.some((frame) => frame.place.key === place.key)) this.used(place.key);
    else this.show(place);
    const frame = this.frame(place, "");
    await frame.ready;
    frame.reveal(items);
  }

  /** @param {string} key */
  used(key) {
    const place = this.open.find((known) => known.key === key);
    if (!place || this.open[0] === place) return;
    this.open = [place, ...this.open.filter((known) => known !== place)];
  }

  /**
   * The row has another width.
   * @param {number} width pixels
   */
  resized(width) {
    if (width === this.width || width <= 0) return;
    this.width = width;
    if (!this.chosen) this.open = this.usual();
    this.arrange();
    for (const frame of this.shown) frame.resized();
  }

  /** Puts the frames of the open panes side by side; those that stay are not touched. */
  arrange() {
    const before = this.shown;
    this.shown = sideBySide(this.open, roomFor(this.width)).map((place) => this.frame(place, ""));
    for (const frame of before) {
      if (this.shown.includes(frame)) continue;
      frame.keepScroll();
      frame.element.remove();
    }
    for (const old of [...this.row.children]) if (old.classList.contains("resizer") || old === this.empty) old.remove();
    /** @type {Element | null} */
    let next = this.row.firstElementChild;
    for (const frame of this.shown) {
      frame.element.style.flexGrow = String(this.shares.get(frame.place.key) ?? 1);
      if (frame.element === next) {
        next = next.nextElementSibling;
        continue;
      }
      this.row.insertBefore(frame.element, next);
    }
    for (let i = 1; i < this.shown.length; i++)
      this.row.insertBefore(this.line(this.shown[i - 1], this.shown[i]), this.shown[i].element);
    this.lay();
    if (this.shown.length === 0) put(this.row, this.empty);
    for (const frame of this.shown) {
      if (!before.includes(frame)) {
        frame.restoreScroll();
        frame.mark(this.app.selection.marks);
      }
      frame.resized();
    }
    this.explain();
    this.forget();
    this.tell.changed();
    const { shown } = this;
    if (!this.chosen) void firstLook(this.app, shown, () => !this.chosen && this.shown === shown);
  }

  /**
   * The frame of a place, made if there is none.
   * @param {Place} place
   * @param {string} view
   */
  frame(place, view) {
    const known = this.frames.get(place.key);
    if (known) {
      // Last in the map is last used.
      this.frames.delete(place.key);
      this.frames.set(place.key, known);
      return known;
    }
    const made = new PaneFrame(this.app, place, view, {
      close: () => {
        this.close(place.key);
        this.tell.closed(place.key);
      },
      used: () => this.used(place.key),
      changed: () => this.tell.changed(),
    });
    this.frames.set(place.key, made);
    return made;
  }

  /** Lets go of the frames that were not open for the longest time. */
  forget() {
    for (const [key, frame] of this.frames) {
      if (this.frames.size <= MOST_KEPT) return;
      if (this.shown.includes(frame) || this.open.some((place) => place.key === key)) continue;
      frame.close();
      this.frames.delete(key);
    }
  }

  /** Shows what is lit. */
  mark() {
    for (const frame of this.shown) frame.mark(this.app.selection.marks);
  }

  /** After a new pin: brings its chain into view in the panes beside the one that was clicked. */
  follow() {
    const { pins } = this.app.selection;
    const last = pins.at(-1);
    this.reach = last ? new Reach(this.app.model, this.app.chain, last.items) : null;
    if (this.reach && pins.length > this.pins) {
      for (const frame of this.shown) if (frame.place.key !== this.open[0]?.key) frame.follow([...this.reach.all]);
    }
    this.pins = pins.length;
    this.explain();
  }

  /** Where a pane shows nothing of the last pin, it says why. */
  explain() {
    for (const frame of this.shown) frame.explain(this.reach, this.app.selection.pins.at(-1)?.name ?? "");
  }

  /**
   * The line between two frames.
   * @param {PaneFrame} left
   * @param {PaneFrame} right
   */
  line(left, right) {
    /** @returns {[number, number]} */
    const measured = () => [left.element.offsetWidth, right.element.offsetWidth];
    /** @type {[number, number]} */
    let widths = [0, 0];
    const keys = [left.place.key, right.place.key];
    /** @type {[number, number]} */
    let shares = [1, 1];
    const apply = () => {
      [left, right].forEach((frame, i) => {
        this.shares.set(keys[i], shares[i]);
        frame.element.style.flexGrow = String(shares[i]);
      });
      left.resized();
      right.resized();
    };
    const made = separator({
      across: false,
      label: `border of ${left.title} and ${right.title}`,
      begin: () => {
        this.settle();
        widths = measured();
        shares = [this.shares.get(keys[0]) ?? 1, this.shares.get(keys[1]) ?? 1];
        // Shares and widths differ where a pane is held at its least width: what is seen counts.
        const sum = shares[0] + shares[1];
        const total = Math.max(1, widths[0] + widths[1]);
        shares = [(sum * widths[0]) / total, (sum * widths[1]) / total];
      },
      drag: (by) => {
        shares = sharesMoved(shares, widths, by);
        apply();
      },
      reset: () => {
        for (const frame of this.shown) {
          this.shares.delete(frame.place.key);
          frame.element.style.flexGrow = "1";
        }
        for (const frame of this.shown) frame.resized();
      },
      value: () => {
        const [one, other] = measured();
        return { now: one, least: LEAST_WIDTH, most: one + other - LEAST_WIDTH };
      },
    });
    // The widths are known once the line is in the page; reading them at once would lay out the page twice.
    made.element.addEventListener("focus", made.refresh);
    made.element.addEventListener("pointerenter", made.refresh);
    made.element.setAttribute("aria-valuenow", "50");
    return made.element;
  }

  /** The line below the row, that sets its height. */
  rowBorder() {
    let height = 0;
    const made = separator({
      across: true,
      label: "height of the panes",
      begin: () => {
        height = this.row.offsetHeight;
      },
      drag: (by) => {
        const wanted = Math.min(MOST_HEIGHT, Math.max(LEAST_HEIGHT, height + by));
        this.row.style.flex = "none";
        this.row.style.minHeight = `${LEAST_HEIGHT}px`;
        this.row.style.height = `${wanted}px`;
        for (const frame of this.shown) frame.resized();
      },
      reset: () => {
        this.row.style.flex = "";
        this.row.style.minHeight = "";
        this.row.style.height = "";
        for (const frame of this.shown) frame.resized();
      },
      value: () => ({ now: this.row.offsetHeight, least: LEAST_HEIGHT, most: MOST_HEIGHT }),
    });
    made.element.addEventListener("focus", made.refresh);
    made.element.setAttribute("aria-valuenow", "520");
    return made;
  }
}
