// The graph of one column beside the source: of all of them where they are equal, else of the chosen one, with a sign on
// each node that the other capture lacks or has otherwise.

import { button, focusPressed, h, plural, put } from "../dom.js";
import { GraphWords } from "../drawing/labels.js";
import { tagShapes } from "../drawing/shapes.js";
import { GraphPane } from "../graph/pane.js";
import { wholeLines } from "../graph/row_alignment.js";

/** @import { Marks } from "../data/app.d.ts" */
/** @import { BodyBox, Compared, ComparedModule, GraphData } from "../types.d.ts" */
/** @import { Side } from "./side.js" */

export class CompareGraph {
  /**
   * @param {Compared} compared
   * @param {(Side | null)[]} sides in the order of the columns
   */
  constructor(compared, sides) {
    this.compared = compared;
    this.sides = sides;
    /** The column whose graph is shown: of a difference what came of it. */
    this.chosen = compared.same ? sides.length - 1 : 0;
    /** Stage of each column, -1 where there is none. @type {number[]} */
    this.stages = [];
    /** @type {GraphPane | null} */
    this.pane = null;
    this.request = 0;
    /** Nodes of each column that the other has not, or has otherwise. @type {Map<number, string>[]} */
    this.unlike = compared.differ.map((own) => new Map(own));
    /** The node that was gone to last, of those of one column alone. */
    this.visited = -1;
    /** Column and stage that are drawn. */
    this.drawn = "";
    this.fitted = false;
    /** Lines of what differs: column and item. @type {[number, number][]} */
    this.causes = [];
    /** The note on where the graph opened. @type {HTMLElement | null} */
    this.noted = null;
    /** Pixels that it has beyond its share. */
    this.more = 0;
    this.title = h("span", { class: "frame-title" }, "graph");
    this.heads = h("div", { class: "frame-tabs" });
    this.tools = h("div", { class: "frame-tools" });
    this.body = h("div", { class: "frame-body" });
    this.element = h(
      "section",
      { class: "frame compare-graph", "aria-label": "graph" },
      h("div", { class: "frame-head" }, this.title, this.heads, this.tools),
      this.body,
    );
  }

  /**
   * Shows the graph of a module.
   * @param {ComparedModule | undefined} module
   */
  async show(module) {
    this.stages = this.sides.map((side, number) => {
      const [id, phase] = module?.places[number] ?? ["", ""];
      const { model } = side ?? {};
      const compilation = model?.core.compilations.findIndex((one) => one.id === id) ?? -1;
      return compilation < 0 || !model ? -1 : model.stage(compilation, phase);
    });
    const there = this.stages.findIndex((stage) => stage >= 0);
    if ((this.stages[this.chosen] ?? -1) < 0) this.chosen = there;
    this.element.hidden = there < 0;
    await this.draw();
  }

  /** True if each column that has a graph has the same one: nodes of the same names from the same above them. */
  get equal() {
    const texts = this.sides.flatMap((side, number) => {
      if (!side || this.stages[number] < 0) return [];
      const { start, count } = side.model.index.stages[this.stages[number]];
      const names = side.model.index.names;
      const rows = names
        .slice(start, start + count)
        .map((name, i) =>
          [name, side.model.kind(start + i), ...side.app.chain.above(start + i).map((one) => names[one])].join(" "),
        );
      return [rows.join("\n")];
    });
    return texts.length === this.sides.length && texts.every((one) => one === texts[0]);
  }

  /** True if one graph is shown for all. */
  get same() {
    return this.equal && !this.compared.same;
  }

  async draw() {
    const request = ++this.request;
    const side = this.sides[this.chosen];
    const stage = this.stages[this.chosen];
    const drawn = `${this.chosen} ${stage}`;
    // Where only the code is shown otherwise, it stays as it is.
    if (this.pane && drawn === this.drawn) return;
    this.drawn = drawn;
    this.pane?.close();
    this.pane = null;
    const equal = this.same;
    this.title.hidden = equal;
    put(
      this.heads,
      equal
        ? h("span", { class: "compare-same" }, "graph, the same for all")
        : this.compared.columns.map(({ target }, number) =>
            this.stages[number] < 0 ? null : this.head(target, number),
          ),
    );
    if (!side || stage < 0) return;
    const data = await side.model.graph(stage);
    if (request !== this.request) return;
    const { start, count } = side.model.index.stages[stage];
    const signs = this.unlike[this.chosen];
    const other = this.compared.columns[1 - this.chosen]?.target ?? "";
    const words = signs.size
      ? new SignedWords(
          data,
          side.model.index.names.slice(start, start + count),
          side.model.core.words.saved,
          start,
          signs,
          other,
        )
      : undefined;
    this.pane = new GraphPane(side.app, stage, data, words);
    put(this.body, this.pane.element);
    put(this.tools, this.pane.tools);
    this.pane.resized();
    this.mark(side, side.selection.marks);
    this.look();
  }

  /**
   * @param {string} target
   * @param {number} number of the column
   */
  head(target, number) {
    const pressed = number === this.chosen;
    const tab = button(target, () => void this.choose(number), { class: "frame-tab", pressed });
    noteOnlyHere(tab, this.onlyIn(number).length);
    return tab;
  }

  /** The nodes of a column's graph that the other has not. @param {number} number */
  onlyIn(number) {
    const stage = this.sides[number]?.model.index.stages[this.stages[number]];
    return stage ? onlyHere(this.unlike[number], stage.start, stage.count) : [];
  }

  /** @param {number} number of the column */
  async choose(number) {
    const own = this.onlyIn(number);
    this.visited = number === this.chosen ? this.visited + 1 : 0;
    this.chosen = number;
    await this.draw();
    // What this one alone has, one after the other.
    if (own.length) this.pane?.goTo(own[this.visited % own.length] - this.pane.start);
    focusPressed(this.heads);
  }

  /** At first something is in view whose colour the code of its column shows as well. */
  look() {
    const side = this.sides[this.chosen];
    if (!this.pane || !side || side.selection.pins.length) return;
    const { units, index } = side.model;
    const seen = new Set(side.pane?.inView().flatMap(([item, cut]) => (cut ? [] : units.of(item))));
    const { start, count } = index.stages[this.stages[this.chosen]];
    const nodes = Array.from({ length: count }, (_, i) => start + i);
    const shown = nodes.filter((item) => units.of(item).some((unit) => seen.has(unit)));
    const line = this.causes.find(([column]) => column === this.chosen)?.[1];
    const own = new Set(line === undefined ? [] : units.of(line));
    const first = shown.filter((item) => units.of(item).some((unit) => own.has(unit)));
    const signed = first.filter((item) => this.unlike[this.chosen].has(item));
    const alike = signed.length ? signed : first.length ? first : shown;
    const { note } = this.pane;
    if (first.length && this.noted !== note) {
      this.noted = note;
      note.append(" Shown first: what differs first.");
      note.hidden = false;
      this.pane.resized();
    }
    if (alike.length && this.pane.far(alike)) this.pane.reveal(alike);
    this.fit();
  }

  /**
   * Gives the graph the room below the code of all columns, as far as it has need of it and nothing stands there.
   * @param {HTMLElement} band
   */
  fill(band) {
    const { viewport } = /** @type {GraphPane} */ (this.pane);
    const blank = this.sides.flatMap((side) => side?.pane?.blank() ?? []);
    const need = viewport.element.scrollHeight - viewport.element.clientHeight;
    // In a notebook the columns keep their height.
    if (!band.closest(".shell-standalone")) return;
    this.more = Math.max(0, Math.min(...blank, need, innerHeight / 4));
    band.style.setProperty("--whole", `${this.more}px`);
    viewport.resized();
  }

  /** The window begins and ends with whole nodes and their tags: the band gives way for that once, as the page opens. */
  fit() {
    const { viewport, drawing } = /** @type {GraphPane} */ (this.pane);
    const band = this.element.parentElement;
    if (!viewport.sized || !band) return;
    if (!this.fitted) this.fill(band);
    const { scroll, lower } = wholeLines(drawing.boxes, viewport.visible);
    if (!this.fitted) band.style.setProperty("--whole", `${this.more + Math.ceil(lower * viewport.scale)}px`);
    this.fitted = true;
    if (scroll) viewport.moveTo(viewport.left, viewport.top + scroll * viewport.scale);
  }

  /**
   * @param {Side} side
   * @param {Marks} marks
   * @param {number[]} [pinned] what comes into view
   */
  mark(side, marks, pinned) {
    if (side !== this.sides[this.chosen] || !this.pane) return;
    this.pane.mark(marks);
    const { start, count } = side.model.index.stages[this.stages[this.chosen]];
    const own = pinned?.filter((item) => item >= start && item < start + count);
    if (own?.length) this.pane.reveal(own);
  }

  resized() {
    this.pane?.resized();
    this.look();
  }
}

/** Nodes by item: how the other has them; "" for those that it has not. @typedef {ReadonlyMap<number, string>} Signs */

export class SignedWords extends GraphWords {
  /**
   * @param {GraphData} data
   * @param {string[]} names
   * @param {string} saved
   * @param {number} start the item that node 0 is
   * @param {Signs} signs
   * @param {string} other what the other capture is called
   */
  constructor(data, names, saved, start, signs, other) {
    super(data, names, saved);
    this.begin = start;
    this.unlike = signs;
    this.rival = other;
  }

  /**
   * Words about a box that bears the sign; "" for all others.
   * @param {BodyBox} box
   */
  sign({ members, body }) {
    const own = members.flatMap((local) => this.unlike.get(this.begin + local) ?? []);
    if (own.length === 0) return "";
    if (members.length > 1 || body >= 0) return `≠ ${own.length} of its nodes differ from ${this.rival}`;
    return own[0] ? `≠ ${own[0]}` : `≠ only here, not in ${this.rival}`;
  }

  /** @override @param {BodyBox} box */
  label(box) {
    return [super.label(box), this.sign(box)].filter(Boolean).join(", ");
  }

  /** @override @param {BodyBox} box */
  tip(box) {
    const [name, ...rest] = super.tip(box).split("\n");
    return [name, this.sign(box), ...rest].filter(Boolean).join("\n");
  }

  /**
   * @override
   * @param {BodyBox} box
   * @param {number} height
   */
  signs(box, height) {
    return this.sign(box) ? tagShapes("unequal", "≠", 10, height - 4) : [];
  }
}

/**
 * The nodes of a stage that the other capture has not.
 * @param {Signs} signs
 * @param {number} start the stage's first item
 * @param {number} count
 */
export function onlyHere(signs, start, count) {
  return [...signs].flatMap(([item, words]) => (words === "" && item >= start && item < start + count ? [item] : []));
}

/**
 * Says in the head of a graph how many nodes it alone has.
 * @param {HTMLElement} head
 * @param {number} count
 */
export function noteOnlyHere(head, count) {
  if (count === 0) return;
  head.title = `${plural(count, "node")} that the other graph has not: go to the next`;
  head.append(" ", h("span", { class: "top-chip compare-lacked" }, `≠ ${count}`, h("span", {}, " only here")));
}
