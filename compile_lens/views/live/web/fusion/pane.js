// The fusion view: loops before on the left, groups after on the right, and what went into what.

import { pairItems, pairName } from "../data/not_fused.js";
import { HOVER, SELF, coloursOf } from "../data/selection.js";
import { button, grouped, h, itemOf, plural, put, s, shortened } from "../dom.js";
import { fusionCard, kindStyle, savedText } from "./card.js";
import { curvesInto, figuresOf, fusionPlan, rowsToShow } from "./plan.js";
import { FusionReasons } from "./reasons.js";

/** @import { App, Marks, Pane } from "../data/app.d.ts" */
/** @import { GraphData, Ledger } from "../types.d.ts" */
/** @import { PlanCard, PlanRow } from "./plan.js" */

/** Loops up to which everything is shown at once. */
const FUSION_WHOLE = 400;
/** Loops of one group that are shown at first. */
const FUSION_LOOPS = 16;
/** Rows that are built at once; the others when they come near the view. */
const FUSION_FIRST = 12;
/** Pixels around the view in which rows are built, and the height that a loop in a row not built yet is given. */
const FUSION_NEAR = 600;
const FUSION_HEIGHT = 62;
/** Nops that are listed. */
const FUSION_NOPS = 60;

/** @implements {Pane} */
export class FusionPane {
  /**
   * @param {App} app
   * @param {string} title
   * @param {{ loops: number, groups: number, loopsData: GraphData, groupsData: GraphData, ledger: Ledger }} data
   *   stages by number, what they hold, and the ledger that has a row for their phase
   */
  constructor(app, title, data) {
    this.app = app;
    this.title = title;
    this.phase = app.model.phase(data.groups);
    this.plan = fusionPlan(
      app.model,
      app.chain,
      { stage: data.loops, data: data.loopsData },
      { stage: data.groups, data: data.groupsData },
    );
    this.all = false;
    this.reasons = new FusionReasons(app, data.groups, data.groupsData);
    /** Rows that are shown but not built yet, by their element. @type {Map<Element, PlanRow>} */
    this.waiting = new Map();
    /** Elements of rows by the items in them. @type {Map<number, Element>} */
    this.places = new Map();
    /** Elements by the item that they stand for. @type {Map<number, HTMLElement[]>} */
    this.cards = new Map();
    /** Ways to unfold a group, by the item of each loop that it still hides. @type {Map<number, () => void>} */
    this.hidden = new Map();
    /** @type {Set<HTMLElement>} */
    this.lit = new Set();
    /** @type {Marks} */
    this.marks = new Map();
    /** @type {HTMLElement | null} */
    this.tools = null;
    this.rows = h("ol", {
      class: "fusion-rows",
      "aria-label": "Groups in the order in which they run, with their loops",
    });
    this.rest = h("div", { class: "fusion-rest" });
    this.nops = h("div", { class: "fusion-nops" });
    const columns = h(
      "div",
      { class: "fusion-columns", "aria-hidden": "true" },
      h("span", {}, "loops before fusion"),
      h("span", {}),
      h("span", {}, "groups after fusion"),
    );
    this.element = h(
      "div",
      { class: "fusion", role: "group", "aria-label": title },
      this.summary(data.ledger),
      columns,
      this.rows,
      this.rest,
      this.nops,
    );
    this.near = new IntersectionObserver(
      (entries) => entries.forEach((entry) => entry.isIntersecting && this.fill(entry.target)),
      { root: this.element, rootMargin: `${FUSION_NEAR}px` },
    );
    this.listen();
    this.showNops();
    this.build();
  }

  /** @param {Ledger} ledger */
  summary(ledger) {
    const figures = figuresOf(ledger, this.phase);
    /** @param {string} title */
    const figure = (title) => figures?.get(title) ?? "—";
    /** @param {string} number @param {string} what */
    const step = (number, what) => h("span", { class: "fusion-figure" }, h("b", {}, number), ` ${what}`);
    /** @param {string} number @param {string} one @param {string} [many] */
    const counted = (number, one, many = `${one}s`) => step(number, number === "1" ? one : many);
    const arrow = () => h("span", { class: "fusion-arrow", "aria-label": "to" }, "→");
    const counts = [
      counted(figures?.get("loops") ?? String(this.plan.loops), "loop"),
      arrow(),
      counted(figures?.get("groups") ?? String(this.plan.groups), "group"),
      ...(figures ? [arrow(), counted(figure("launches"), "launch", "launches")] : []),
    ];
    // The loops that stand below, each by itself.
    const parts = this.plan.rows.flatMap(({ loops }) => loops.flatMap(({ reads, writes }) => [reads, writes]));
    const before = parts.includes(-1) ? "—" : `~${grouped(parts.reduce((sum, one) => sum + one, 0))}`;
    const after = figure("bytes after");
    const bytes =
      before === "—" && after === "—"
        ? []
        : [
            h("span", { class: "fusion-gap" }),
            step(before, "B before"),
            arrow(),
            step(after, "B after"),
            h("span", { class: "fusion-note", title: this.app.model.core.words.modelled }, "modelled"),
          ];
    return h("div", { class: "fusion-summary" }, ...counts, ...bytes);
  }

  listen() {
    const { selection, model } = this.app;
    const by = this.element;
    /** @param {Event} event */
    const over = (event) => {
      const item = itemOf(event.target);
      const pair = pairItems(event.target);
      if (pair.length) selection.preview(pair, pairName(model, pair), by);
      else if (item >= 0) selection.preview([item], model.name(item), by);
      else selection.preview([]);
    };
    this.element.addEventListener("pointerover", over);
    this.element.addEventListener("focusin", over);
    this.element.addEventListener("pointerleave", () => selection.preview([]));
    this.element.addEventListener("focusout", (event) => selection.left(event, by));
    // Cards are buttons: Enter and Space arrive as clicks.
    this.element.addEventListener("click", (event) => {
      const item = itemOf(event.target);
      const pair = pairItems(event.target);
      if (pair.length) selection.toggle(pair, pairName(model, pair));
      if (item >= 0) selection.toggle([item], model.name(item));
    });
  }

  /** Makes room for the rows anew and builds the first ones. */
  build() {
    this.near.disconnect();
    for (const known of [this.waiting, this.places, this.cards, this.hidden, this.lit]) known.clear();
    for (const element of this.nops.querySelectorAll(".fusion-card"))
      this.register(/** @type {HTMLElement} */ (element));
    const { rows, left } = rowsToShow(this.plan, FUSION_WHOLE, this.all);
    const elements = rows.map((row) => {
      const count = Math.max(1, Math.min(row.loops.length, FUSION_LOOPS + 1));
      const element = h("li", { class: "fusion-row", style: `min-height:${count * FUSION_HEIGHT + 16}px` });
      this.waiting.set(element, row);
      if (row.group) this.places.set(row.group.item, element);
      for (const loop of row.loops) this.places.set(loop.item, element);
      return element;
    });
    put(this.rows, ...elements);
    elements.forEach((element, i) => (i < FUSION_FIRST ? this.fill(element) : this.near.observe(element)));
    put(
      this.rest,
      left ? `Shown are the ${plural(rows.length, "group")} of several loops. ` : null,
      left ? button(`Show all ${grouped(rows.length + left)}`, () => this.showAll(), { class: "button" }) : null,
      rows.length === 0 ? "There is nothing to fuse: this phase has no loops." : null,
    );
  }

  /** Builds a row in its place. @param {Element} place */
  fill(place) {
    const row = this.waiting.get(place);
    if (!row) return;
    this.waiting.delete(place);
    this.near.unobserve(place);
    this.row(/** @type {HTMLElement} */ (place), row);
  }

  showAll() {
    this.all = true;
    this.build();
    const first = /** @type {HTMLElement | null} */ (this.rows.querySelector(".fusion-card"));
    first?.focus({ preventScroll: true });
    this.app.say(`Showing all ${plural(this.plan.rows.length, "group")}`);
  }

  /** @param {HTMLElement} element @param {PlanRow} row */
  row(element, row) {
    const { group, loops } = row;
    const fused = group !== null && loops.length > 1;
    const place = h("div", { class: "fusion-loops" });
    const curves = h("div", { class: "fusion-curves", "aria-hidden": "true" });
    /** @param {number} count */
    const show = (count) => {
      const shown = loops.slice(0, count);
      const hidden = loops.slice(count);
      const unfold = () => show(loops.length);
      put(place, ...shown.map((loop) => h("div", { class: "fusion-slot" }, this.card(loop, "loop", null))));
      for (const loop of shown) this.hidden.delete(loop.item);
      for (const loop of hidden) this.hidden.set(loop.item, unfold);
      if (hidden.length) {
        const more = button(
          `and ${hidden.length} more`,
          () => {
            unfold();
            const first = /** @type {HTMLElement | null} */ (place.children[count]?.firstElementChild);
            first?.focus({ preventScroll: true });
          },
          { class: "button fusion-more" },
        );
        place.append(h("div", { class: "fusion-slot" }, more));
      }
      if (group) put(curves, curveDrawing(shown.length + (hidden.length ? 1 : 0), group.kind));
    };
    show(loops.length > FUSION_LOOPS + 1 ? FUSION_LOOPS : loops.length);
    const label = group === null ? "in no group of the record" : fused ? `${loops.length} loops → 1 group` : null;
    const state = group === null ? "fusion-loose" : fused ? "fusion-fused" : "fusion-alone";
    element.className = `fusion-row ${state}`;
    element.setAttribute("style", group ? kindStyle(group.kind) : "");
    put(
      element,
      label ? h("div", { class: "fusion-label" }, label, savedText(row)) : null,
      h(
        "div",
        { class: "fusion-pair" },
        place,
        curves,
        h("div", { class: "fusion-side" }, group ? this.card(group, "group", row) : null),
      ),
      group ? this.reasons.of(group.item) : null,
    );
  }

  /**
   * A card that lights up with its item.
   * @param {PlanCard} card
   * @param {"loop" | "group"} what
   * @param {PlanRow | null} row of a group
   */
  card(card, what, row) {
    const element = fusionCard(card, what, row);
    this.register(element);
    return element;
  }

  /** Nops stand apart: they are no work. */
  showNops() {
    const { nops } = this.plan;
    this.nops.hidden = nops.length === 0;
    if (nops.length === 0) return;
    const names = nops.slice(0, FUSION_NOPS).map((nop) =>
      h(
        "button",
        {
          type: "button",
          class: "fusion-card fusion-nop",
          "data-item": nop.item,
          "aria-pressed": "false",
          title: shortened(`${nop.name}\n${nop.target}`, 300),
        },
        h("bdi", {}, shortened(nop.name, 40)),
        h("span", { class: "fusion-dots" }),
      ),
    );
    const more = nops.length > FUSION_NOPS ? ` and ${grouped(nops.length - FUSION_NOPS)} more` : null;
    put(this.nops, h("span", { class: "fusion-nops-title" }, "Nops, which run nothing: "), ...names, more);
  }

  /** @param {HTMLElement} element */
  register(element) {
    const item = Number(element.dataset.item);
    const known = this.cards.get(item);
    if (known) known.push(element);
    else this.cards.set(item, [element]);
    const mark = this.marks.get(item) ?? 0;
    if (mark) this.light(element, mark);
  }

  /** @param {Marks} marks */
  mark(marks) {
    this.marks = marks;
    this.reasons.mark(this.rows);
    const before = this.lit;
    this.lit = new Set();
    if (marks.size < this.cards.size) {
      for (const [item, mark] of marks) for (const element of this.cards.get(item) ?? []) this.light(element, mark);
    } else {
      for (const [item, elements] of this.cards) {
        const mark = marks.get(item);
        if (mark) for (const element of elements) this.light(element, mark);
      }
    }
    for (const element of before) if (!this.lit.has(element)) this.light(element, 0);
  }

  /** @param {HTMLElement} element @param {number} mark */
  light(element, mark) {
    if (mark) this.lit.add(element);
    const before = Number(element.dataset.mark ?? 0);
    if (before === mark) return;
    element.dataset.mark = String(mark);
    const colours = coloursOf(mark);
    const own = element.className.replace(/ lit\b.*$/, "");
    const lit = mark ? " lit" : "";
    const hover = mark & HOVER ? " lit-hover" : "";
    const self = mark & SELF ? " lit-self" : "";
    element.className = `${own}${lit}${hover}${self}${colours.length ? ` lit-pin-${colours[0]}` : ""}`;
    if ((mark | before) & SELF)
      element.setAttribute("aria-pressed", String(this.app.selection.isPinned([Number(element.dataset.item)])));
    const dots = element.querySelector(".fusion-dots");
    if (dots && (colours.length > 1 || dots.firstChild)) put(dots, ...colours.slice(1).map(() => h("i")));
  }

  /** @param {number[]} items */
  reveal(items) {
    for (const item of items) {
      const element = this.find(item);
      if (!element) continue;
      // Only this pane scrolls: the page around it stays where it is.
      const own = element.getBoundingClientRect();
      const view = this.element.getBoundingClientRect();
      if (own.top < view.top || own.bottom > view.bottom) {
        this.element.scrollTop += own.top - view.top - Math.max(8, (view.height - own.height) / 3);
      }
      return true;
    }
    return false;
  }

  /** The element of an item, built or unfolded if it is not there yet. @param {number} item */
  find(item) {
    if (
      !this.places.has(item) &&
      !this.all &&
      this.plan.rows.some((row) => row.group?.item === item || row.loops.some((loop) => loop.item === item))
    ) {
      this.all = true;
      this.build();
    }
    const place = this.places.get(item);
    if (place) this.fill(place);
    this.hidden.get(item)?.();
    return this.cards.get(item)?.[0];
  }

  /** Curves are drawn in shares of their row: another size needs nothing new. */
  resized() {
    return;
  }

  close() {
    this.near.disconnect();
  }
}

/** @param {number} count @param {string} kind */
function curveDrawing(count, kind) {
  const paths = curvesInto(count).map((d) => s("path", { d, class: "fusion-curve" }));
  return s("svg", { viewBox: "0 0 100 100", preserveAspectRatio: "none", style: kindStyle(kind) }, paths);
}
