// The row of panes: which are open, how wide and how high they are, and what each shows of the selection.

import { SourcePane } from "../code/source_pane.js";
import { PYTHON } from "../data/model.js";
import { Reach } from "../data/reasons.js";
import { h, put } from "../dom.js";
import { carriedOver, inPhase, phoneHeight, PHONE_WIDTH, placeOf, roomFor } from "./arrangement.js";
import { firstLook } from "./initial_reveal.js";
import { toFirstHits } from "./reveal.js";
import { regrouped, sideBySide, withPlace, withoutPlace } from "./tab_groups.js";
import { columnBorder, rowBorder } from "./pane_borders.js";
import { PaneFrame } from "./pane_frame.js";
import { kindOf, tabsOf } from "./tabs.js";
import { graphBelow, heightOfSource, tableBeside, usualGroups, WIDE } from "./default_panes.js";

/** @import { App, Pin } from "../data/app.d.ts" */
/** @import { Place } from "./arrangement.js" */
/** @import { Group } from "./tab_groups.js" */

/** Frames that are kept, with what they have read and drawn, whether they are open or not. */
const MOST_KEPT = 12;
export class Panes {
  /**
   * @param {App} app
   * @param {{ changed: () => void, closed: (key: string) => void }} tell
   */
  constructor(app, tell) {
    this.app = app;
    this.tell = tell;
    /** Most recently used first. @type {Group[]} */
    this.groups = [];
    /** The place of the pane that has the room of all, "" for none. */
    this.large = "";
    /** @type {Map<string, PaneFrame>} */
    this.frames = new Map();
    /** Parts of the width, by key; 1 where nobody moved a border. @type {Map<string, number>} */
    this.shares = new Map();
    /** Frames side by side, left to right. @type {PaneFrame[]} */
    this.shown = [];
    this.width = 0;
    this.compilation = 0;
    /** The phase that was chosen, or in which it failed; "" for the first. */
    this.phase = app.model.core.phase;
    /** True if anyone chose panes; before that they follow the width. */
    this.chosen = false;
    this.pins = app.selection.pins.length;
    /** The chain of the last pin. @type {Reach | null} */
    this.reach = null;
    /** The pin that this is of. @type {Pin | undefined} */
    this.followed = undefined;
    const { compilations, outcome } = app.model.core;
    this.row = h("div", { class: compilations.length || outcome.failure ? "panes-row" : "panes-row panes-short" });
    this.empty = h("p", { class: "panes-empty" }, "Choose a stage above to open it here.");
    this.element = h("div", { class: "panes" }, this.row, rowBorder(this));
  }

  /** @param {Place} place */
  kind(place) {
    return kindOf(this.app.model, place);
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
      const { stages } = this.app.model.index;
      this.groups = regrouped(this.groups, (place) => carriedOver(place, stages, from, compilation));
      if (this.groups.flat().every((place) => place.stage === 0)) this.chosen = false;
    }
    if (!this.chosen) this.groups = this.usual();
    this.arrange();
  }

  /**
   * Shows another phase: each stage of the one before gives way to its like.
   * @param {string} phase
   */
  choosePhase(phase) {
    this.phase = phase;
    const { stages } = this.app.model.index;
    this.groups = this.chosen ? regrouped(this.groups, (place) => inPhase(place, stages, phase)) : this.usual();
    this.arrange();
  }

  /** True if the graph stands below the source: where that is short, and where three would be too narrow. */
  get below() {
    return graphBelow(this.app.model.core, this.width);
  }

  /** Puts the usual panes where they tell most; others stand side by side and share the room. */
  lay() {
    const { model } = this.app;
    const kinds = this.shown.map((frame) => this.kind(frame.place)).join(" ");
    // Whoever moved a border has decided otherwise.
    const usual = kinds === "source graph code" && this.shown.every(({ place }) => !this.shares.has(place.key));
    const stacked = usual && this.below && this.width >= PHONE_WIDTH;
    this.row.classList.toggle("panes-stacked", stacked);
    this.row.classList.toggle("panes-usual", usual && !stacked && this.width >= WIDE);
    const { compilations } = model.core;
    this.row.classList.toggle("panes-program", stacked && tableBeside(compilations.length, this.row.clientHeight));
    const most = compilations.length > 1 ? "62%" : "50%";
    const height = heightOfSource(model.core);
    this.row.style.setProperty("--source", `min(${height}px, ${most})`);
    this.row.classList.toggle("panes-phone", this.width > 0 && this.width < PHONE_WIDTH);
    for (const { element, place } of this.shown)
      element.style.setProperty("--phone", `${phoneHeight(this.kind(place), height)}px`);
  }

  /** Whoever moves a border decides: what the panes have now are their shares. */
  settle() {
    if (!this.row.matches(".panes-stacked, .panes-usual")) return;
    const widths = this.shown.map((frame) => frame.element.offsetWidth);
    this.chosen = true;
    this.row.classList.remove("panes-stacked", "panes-usual", "panes-program");
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
    const { model, edited } = this.app;
    return usualGroups(model, this.compilation, this.width, this.below, this.phase, !edited);
  }

  /**
   * Opens exactly these panes with their tabs, the first ones first where there is no room for all.
   * @param {{ place: Place, view: string }[][]} panes
   */
  restore(panes) {
    this.chosen = true;
    this.groups = panes.map((tabs) => tabs.map(({ place }) => place));
    for (const { place, view } of panes.flat()) {
      const frame = this.frame(place, view);
      if (view || this.kind(place) === "code") frame.show(view);
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
    this.groups = withPlace(this.groups, place, roomFor(this.width), (one) => this.kind(one));
    const [, beside] = this.groups[0];
    if (beside) this.inherit(beside.key, place.key);
    // One that has the room of all gives way to what is opened beside it.
    if (this.large && !this.groups[0].some(({ key }) => key === this.large)) this.large = "";
    else if (this.large) this.large = place.key;
    this.arrange();
    this.app.say(`opened ${this.frame(place, "").title}`);
  }

  /** @param {string} key */
  close(key) {
    this.chosen = true;
    const own = this.groups.find((group) => group.some((place) => place.key === key)) ?? [];
    const next = own.find((place) => place.key !== key)?.key ?? "";
    this.groups = withoutPlace(this.groups, key);
    this.inherit(key, next);
    if (this.large === key) this.large = next;
    const frame = this.frames.get(key);
    this.arrange();
    if (frame) this.app.say(`closed ${frame.title}`);
  }

  /**
   * A tab that takes the place of another has its width.
   * @param {string} from
   * @param {string} to
   */
  inherit(from, to) {
    const share = this.shares.get(from);
    if (share === undefined) this.shares.delete(to);
    else this.shares.set(to, share);
  }

  /** The places of each pane that stands in the row, left to right. */
  visible() {
    const groups = sideBySide(this.groups, roomFor(this.width), (place) => this.kind(place));
    const large = groups.find((group) => group.some(({ key }) => key === this.large));
    if (!large) this.large = "";
    return large ? [large] : groups;
  }

  /**
   * The tabs of a pane, and what a click on each does.
   * @param {Group} group
   */
  tabs(group) {
    return tabsOf(this.app.model, group).map((tab) => ({
      ...tab,
      pressed: tab.place.key === group[0].key,
      act: () => {
        if (tab.place.key !== group[0].key) this.show(tab.place);
        void this.frame(tab.place, "").page(tab.page);
      },
    }));
  }

  /**
   * Gives a pane the room of all, or puts it back.
   * @param {string} key
   */
  enlarge(key) {
    this.large = this.large === key ? "" : key;
    this.arrange();
    const frame = this.frames.get(key);
    if (frame) this.app.say(this.large ? `${frame.title} has the room of all panes` : "all panes are back");
    frame?.focusSize();
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

  /**
   * Moves to the next place in the source of what was warned of.
   * @param {string} more
   */
  async next(more) {
    await this.reveal(PYTHON, []);
    const { pane } = this.frame(placeOf(PYTHON), "");
    return pane instanceof SourcePane && pane.next(more);
  }

  /** The same for the pane that was used last. */
  enlargeUsed() {
    const [used] = this.groups[0] ?? [];
    if (used) this.enlarge(this.large || used.key);
  }

  /** @param {string} key */
  used(key) {
    const own = this.groups.find((group) => group.some((place) => place.key === key));
    if (!own || this.groups[0] === own) return;
    this.groups = [own, ...this.groups.filter((group) => group !== own)];
  }

  /**
   * The row has another width.
   * @param {number} width pixels
   */
  resized(width) {
    if (width === this.width || width <= 0) return;
    this.width = width;
    if (!this.chosen) this.groups = this.usual();
    this.arrange();
    for (const frame of this.shown) frame.resized();
  }

  /** Puts the frames of the open panes side by side; those that stay are not touched. */
  arrange() {
    const before = this.shown;
    const groups = this.visible();
    this.shown = groups.map(([place]) => this.frame(place, ""));
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
      this.row.insertBefore(columnBorder(this, this.shown[i - 1], this.shown[i]), this.shown[i].element);
    this.shown.forEach((frame, i) => frame.head(this.tabs(groups[i]), this.large !== ""));
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
    const phone = this.width > 0 && this.width < PHONE_WIDTH;
    if (!this.chosen) void firstLook(this.app, shown, () => !this.chosen && this.shown === shown, phone);
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
    const frame = new PaneFrame(this.app, place, view, {
      close: () => {
        this.close(place.key);
        this.tell.closed(place.key);
      },
      used: () => this.used(place.key),
      size: () => this.enlarge(place.key),
      changed: () => this.tell.changed(),
      choose: (compilation) => {
        this.app.choose(compilation);
        // What was pressed is gone: the line that is pinned takes the focus, or what stands first.
        const next = this.row.querySelector(".listing-line.lit, .listing [tabindex='0'], button");
        /** @type {HTMLElement | null} */ (next)?.focus();
      },
    });
    this.frames.set(place.key, frame);
    return frame;
  }

  /** Lets go of the frames that were not open for the longest time. */
  forget() {
    for (const [key, frame] of this.frames) {
      if (this.frames.size <= MOST_KEPT) return;
      if (this.shown.includes(frame) || this.groups.flat().some((place) => place.key === key)) continue;
      frame.close();
      this.frames.delete(key);
    }
  }

  /** Shows what is lit. */
  mark() {
    for (const frame of this.shown) frame.mark(this.app.selection.marks);
  }

  /** After a new pin: brings its chain into view in the panes beside the one that was clicked. */
  async follow() {
    const { pins } = this.app.selection;
    const last = pins.at(-1);
    if (last !== this.followed) this.reach = last ? new Reach(this.app.model, this.app.chain, last.items) : null;
    this.followed = last;
    const before = this.pins;
    this.pins = pins.length;
    this.explain();
    if (!last || !this.reach || pins.length <= before) return;
    const [used] = this.groups[0] ?? [];
    await toFirstHits(this.app, this.shown, used?.key, this.reach.main);
    for (const frame of this.shown) if (frame.place.key === used?.key) frame.keepInView(last.items);
  }

  /** Makes a pane that shows nothing of the last pin say why. */
  explain() {
    const name = this.app.selection.pins.at(-1)?.name ?? "";
    let explained = false;
    for (const frame of this.shown) explained = frame.explain(this.reach, name, explained) || explained;
  }
}
