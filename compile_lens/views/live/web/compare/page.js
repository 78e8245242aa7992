// Captures side by side as a living page, of several targets or before and after a change: the source as a band on
// top, a column for each, what differs between them.

import { SourcePane } from "../code/source_pane.js";
import { actOnLetter, listenToKeys, showKeys } from "../controls/keys.js";
import { Model } from "../data/model.js";
import { Payload } from "../data/payload.js";
import { phaseButton } from "../chain/flow_parts.js";
import { button, focusPressed, h, plural, put } from "../dom.js";
import { wrapAll } from "../listing/line_wrap.js";
import { AddressBar, noteTrouble } from "../shell/address_bar.js";
import { FindAll } from "../shell/find.js";
import { decodeCompare, encodeCompare } from "./address.js";
import { WrappedCode } from "./code.js";
import { CompareGraph } from "./graph.js";
import { headerOf, otherCounts, stepsOf } from "./header.js";
import { byKernel, noteUnmatched, onlyDifferences, openBeside, openPartners } from "./kernels.js";
import { pairedKernels, partnerOf } from "./pairs.js";
import { comparePrint } from "./print.js";
import { reasonsOf } from "./reasons.js";
import { ScrollAnchor, openSource, revealAll, showIn } from "./scrolling.js";
import { UnmatchedNote, Side } from "./side.js";

/** @import { Compared, ComparedModule } from "../types.d.ts" */

/**
 * @param {HTMLElement} host
 * @param {Record<string, string>} parts
 * @param {(packed: string) => Promise<string>} unpack
 * @param {boolean} standalone
 */
export async function openCompare(host, parts, unpack, standalone) {
  /** @type {Compared} */
  const compared = JSON.parse(await unpack(parts.comparison));
  const voice = h("p", { class: "unseen", role: "status", "aria-live": "polite" });
  const sides = await Promise.all(
    compared.columns.map(async (_, number) => {
      const own = parts[`column ${number}`];
      if (own === undefined) return null;
      const payload = new Payload(JSON.parse(own), unpack);
      const [core, index] = await Promise.all([payload.get("core"), payload.get("index")]);
      return new Side(new Model(core, index, payload), voice);
    }),
  );
  const [first, second] = sides;
  if (compared.same && first && second)
    second.pair(first, compared.same, [...compared.lowered, ...pairedKernels(compared.modules)]);
  const page = new ComparePage(host, compared, sides, standalone, voice);
  listenToKeys(host, standalone, (event) => page.key(event));
  await page.open();
  return page;
}

class ComparePage {
  /**
   * @param {HTMLElement} host
   * @param {Compared} compared
   * @param {(Side | null)[]} sides in the order of the columns; null where it failed
   * @param {boolean} standalone
   * @param {HTMLElement} voice
   */
  constructor(host, compared, sides, standalone, voice) {
    this.host = host;
    this.compared = compared;
    this.sides = sides;
    this.there = sides.filter((side) => side !== null);
    this.module = 0;
    // If two captures differ, only the differences are open.
    this.only = compared.same !== null && compared.modules.some(({ own }) => own.some((lines) => lines.length > 0));
    this.standalone = standalone;
    /** The column of the last pin: the others follow it. */
    this.side = Math.max(0, sides.findIndex(Boolean));
    /** The state of a page without a hash. */
    this.rest = { module: 0, only: this.only, side: this.side, pins: [] };
    this.indices = sides.map((side) => side?.model.index ?? null);
    this.bar = new AddressBar(() => this.hash());
    this.unmatched = new UnmatchedNote(compared);
    this.trouble = h("p", { class: "link-trouble", role: "status", hidden: true });
    this.busy = false;
    // The first has its colours from its record; the others take them over.
    const colours = new Map();
    for (const [number, side] of this.there.entries()) {
      // Several that are one on the other side have the colour of the first of them.
      if (number === 0)
        side.model.units.all.forEach((unit, i) => {
          if (!colours.has(side.colourOf(i))) colours.set(side.colourOf(i), unit.colour);
        });
      side.recolour(colours);
      side.selection.subscribe((what) => this.selected(side, what));
    }
    // One source for all, unless each has its own.
    const shown = compared.sources.length ? this.there : this.there.slice(0, 1);
    this.sources = shown.map((side, number) => new SourcePane(side.app, compared.sources[number], wrapAll));
    this.graph = new CompareGraph(compared, sides);
    this.band = h(
      "section",
      { class: "compare-band", "aria-label": "Python source and graph" },
      this.sources.map(({ element }) => element),
      this.graph.element,
    );
    this.columns = h("div", { class: "compare-columns" });
    this.flow = h("nav", { class: "flow compare-flow", "aria-label": "what is counted" });
    this.find = new FindAll(
      () => [this.columns],
      () => this.focusPhase(),
    );
    this.element = h(
      "div",
      { class: standalone ? "shell shell-standalone compare" : "shell compare" },
      // What one sees first, as high as the window; the reasons follow below.
      h(
        "div",
        { class: "compare-screen" },
        headerOf(compared, this.find.element, standalone),
        this.flow,
        this.trouble,
        this.band,
        this.columns,
      ),
      reasonsOf(compared, sides, (column) => this.showSource(column)),
      this.unmatched.element,
      voice,
    );
    this.anchor = new ScrollAnchor(this.element);
    this.paper = comparePrint(this);
    /** The sources are scrolled to the first causes. */
    this.opened = false;
    new ResizeObserver(() => this.resized()).observe(this.element);
  }

  /** The modules, what each counts, and whether that is the same for all targets. */
  row() {
    const { modules } = this.compared;
    const several = new Set(modules.map(({ compilation }) => compilation)).size > 1;
    const module = modules[this.module];
    const phases = modules.map(({ title, compilation }, number) =>
      phaseButton(title, several ? compilation : "code", number === this.module, () => this.choose(number)),
    );
    const only = button("differences only", () => this.toggle(), {
      class: "button compare-only",
      label: "fold the lines that another has too",
      pressed: this.only,
    });
    put(
      this.flow,
      h(
        "div",
        { class: "flow-scroll" },
        h("div", { class: "flow-phases", role: "group", "aria-label": "phase" }, phases),
        h("ol", { class: "flow-steps" }, stepsOf(this.compared, module)),
      ),
      h("div", { class: "flow-more" }, only),
    );
  }

  /** Shows what the address names, and from then on says there what is shown. */
  async open() {
    if (!this.standalone) {
      await this.show();
      return;
    }
    await this.restore(location.hash, true);
    this.bar.follow(() => this.restore(location.hash));
  }

  /** The hash that names what is shown. */
  hash() {
    const { module, only, side } = this;
    const pins = this.sides[side]?.selection.pins ?? [];
    return encodeCompare({ module, only, side, pins }, this.rest, this.indices);
  }

  /** Starts printing once the page has the element. */
  begin() {
    if (!this.standalone) return;
    this.element.after(this.paper.element);
    this.paper.begin(this.host);
  }

  /**
   * @param {string} hash
   * @param {boolean} [first] whether nothing is shown yet
   */
  async restore(hash, first = false) {
    const { modules } = this.compared;
    const { state, trouble } = decodeCompare(hash, this.rest, this.indices, modules.length);
    // Beside an editor the hash is that of the version before.
    noteTrouble(this.trouble, this.standalone ? trouble : "");
    const other = first || state.module !== this.module || state.only !== this.only;
    this.module = state.module;
    this.only = state.only;
    this.anchor.forget();
    if (other) await this.show();
    if (!first || state.pins.length) this.sides[state.side]?.selection.replace(state.pins);
  }

  /** Writes what is shown to the address. */
  changed() {
    if (this.standalone) this.bar.write();
  }

  toggle() {
    this.only = !this.only;
    this.changed();
    void this.show().then(() => /** @type {HTMLElement} */ (this.flow.querySelector(".compare-only")).focus());
  }

  /** @param {number} module */
  choose(module) {
    this.module = module;
    this.changed();
    void this.show().then(() => this.focusPhase());
  }

  focusPhase() {
    focusPressed(this.flow);
  }

  /** Shows the code of the module that is chosen. */
  async show() {
    this.row();
    const module = this.compared.modules[this.module];
    const frames = await Promise.all(this.compared.columns.map((_, number) => this.column(number, module)));
    put(this.columns, frames);
    if (module && this.compared.same) openPartners(module, this.sides);
    for (const source of this.sources) source.recolour();
    this.resized();
    await this.graph.show(module);
    // Pins light up in the new code, and come into view.
    for (const side of this.there) this.light(side, "pins");
  }

  /**
   * @param {number} number
   * @param {ComparedModule | undefined} module
   */
  async column(number, module) {
    const { target, failure, facts } = this.compared.columns[number];
    const side = this.sides[number];
    side?.pane?.close();
    // Two counts of one row need no words of their own.
    const chips = module && !this.compared.same ? otherCounts(module.counts, number) : [];
    const own = module?.own[number] ?? [];
    const lacked = `≠ ${plural(own.length, "line")}`;
    const others = `that the ${this.sides.length > 2 ? "others lack" : "other lacks"}`;
    if (own.length && !this.compared.same) chips.push(`${lacked} ${others}`);
    const none = h("span", { class: "compare-none" }, failure ? "failed" : `no line ${others}`);
    const frame = h(
      "section",
      { class: "frame compare-column", "aria-label": target },
      h(
        "div",
        { class: "frame-head" },
        h("span", { class: "frame-title" }, target),
        // Of two captures there is nothing else to say beside the counts of the row: it stands in the head.
        !this.compared.same
          ? null
          : own.length
            ? h("span", { class: "top-chip", title: `${lacked} ${others}` }, lacked)
            : none,
        h("span", { class: "frame-facts", title: facts.join(" · ") }, facts.join(" · ")),
        side?.tools,
      ),
      this.compared.same
        ? null
        : h(
            "div",
            { class: "compare-chips" },
            chips.length ? chips.map((text) => h("span", { class: "top-chip" }, text)) : none,
          ),
      side?.body ??
        h("pre", { class: "compare-failure", tabindex: "0", role: "group", "aria-label": "failure" }, failure),
    );
    if (!side || !module) return frame;
    const [id, phase] = module.places[number] ?? ["", ""];
    const compilation = side.model.core.compilations.findIndex((one) => one.id === id);
    side.app.compilation = Math.max(0, compilation);
    const stage = side.model.stage(compilation, `${phase}.code`);
    if (stage < 0) {
      side.pane = null;
      put(side.tools);
      put(side.body, h("p", { class: "listing-empty" }, side.model.core.words.noCode));
      return frame;
    }
    const data = await side.model.code(stage);
    const lines = byKernel(own);
    const shown = this.only
      ? onlyDifferences(data, lines, this.compared.alike, this.compared.same ? side.model.units : null, (item) =>
          partnerOf(module, number, item),
        )
      : data;
    // One kernel has its row as well: its bars say which lines are in it.
    const pane = new WrappedCode(side.app, stage, shown, lines, undefined, 1);
    side.pane = pane;
    noteUnmatched(module, number, pane);
    side.app.beside = (_, [item]) => openBeside(module, this.sides, number, item);
    put(side.body, side.pane.element);
    put(side.tools, side.pane.pageTabs(), side.pane.tools);
    return frame;
  }

  /**
   * Lights up on all sides what is lit on one.
   * @param {Side} side
   * @param {"hover" | "pins"} what
   */
  selected(side, what) {
    if (!this.busy) {
      this.busy = true;
      if (what === "pins") this.side = this.sides.indexOf(side);
      const { pins, hovered, hoveredName } = side.selection;
      for (const other of this.there.filter((one) => one !== side)) {
        const others = (/** @type {number[]} */ items) => side.counterparts(other, items);
        if (what === "pins")
          other.selection.replace(
            pins.map(({ items, name }) => ({ items: others(items), name })).filter(({ items }) => items.length),
          );
        else other.selection.preview(others(hovered), hoveredName);
      }
      this.busy = false;
      if (what === "pins") {
        this.unmatched.update(side, this.sides.indexOf(side), this.there);
        this.changed();
      }
    }
    this.light(side, what);
  }

  /**
   * Lights up the panes of a side.
   * @param {Side} side
   * @param {"hover" | "pins"} what
   */
  light(side, what) {
    const { units, pins, marks } = side.selection;
    this.element.classList.toggle("spot", units !== null);
    side.pane?.mark(marks);
    const source = this.sources[this.there.indexOf(side)];
    source?.mark(marks);
    const last = what === "pins" ? pins.at(-1) : undefined;
    const through = last && [...side.app.chain.own(last.items)];
    // The clicked pane keeps its place; the counterparts come into view.
    if (through && side.pane) revealAll(side.pane, through, this.only, this.anchor);
    if (source && through && !this.anchor.within(source.element)) showIn(source, through);
    this.graph.mark(side, marks, this.anchor.within(this.graph.element) ? undefined : through);
  }

  /** Brings the source of a column into view. @param {number} column */
  showSource(column) {
    (this.sources[column] ?? this.sources[0]).element.scrollIntoView({ block: "nearest" });
  }

  /** Scrolls each source of a difference to its first cause, or to its first line that differs. */
  openAtCauses() {
    if (this.opened || this.band.clientHeight === 0) return;
    this.opened = true;
    const places = this.compared.levels.flatMap(({ changes }) => changes.flatMap(({ places: all }) => all));
    this.sources.forEach((source, number) => openSource(source, places.find(([, at]) => at?.[0] === number)?.[1]));
    this.graph.causes = places.flatMap(([, at]) => (at ? [at] : []));
  }

  resized() {
    for (const source of this.sources) source.resized();
    for (const side of this.there) side.pane?.resized();
    this.openAtCauses();
    this.graph.resized();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.key === "Tab") return;
    event.stopPropagation();
    if (event.key === "Escape" && !event.defaultPrevented) this.there[0]?.selection.clear();
    const phase = (/** @type {string[]} */ ...names) => {
      const at = this.compared.modules.findIndex((one) => names.some((name) => one.title.includes(name)));
      if (at >= 0) this.choose(at);
    };
    actOnLetter(event, {
      ...this.find.letters,
      f: () => phase("forward", "inference"),
      b: () => phase("backward"),
      "?": () => showKeys(this.element),
    });
  }
}
