// The stage strip: every form that the function took, left to right, a lane for each phase. A card opens its pane.

import { coloursOf, HOVER } from "../data/selection.js";
import { h, put } from "../dom.js";
import { fusionOf, placeOf, placeOfFinding } from "../panes/arrangement.js";

/** @import { App, Marks } from "../data/app.d.ts" */
/** @import { FindingHead, IndexStage, Lane, Step } from "../types.d.ts" */
/** @import { Place } from "../panes/arrangement.js" */

/** @typedef {{ place: Place, stages: number[], button: HTMLButtonElement, dots: HTMLElement, bits: number }} Card */

export class Strip {
  /**
   * @param {App} app
   * @param {(place: Place) => void} toggle opens or closes a pane
   */
  constructor(app, toggle) {
    this.app = app;
    this.toggle = toggle;
    /** @type {Map<string, Card>} */
    this.cards = new Map();
    /** @type {Set<string>} */
    this.shown = new Set();
    this.element = h("nav", { class: "strip", "aria-label": "stages" });
  }

  /**
   * Shows the stages of a compilation.
   * @param {number} number
   */
  choose(number) {
    this.cards.clear();
    const { core, index } = this.app.model;
    const lanes = core.compilations[number]?.lanes ?? [];
    const source = core.sources.length || index.stages[0].count ? this.sourceCard() : null;
    const shared = lanes.find((lane) => lane.phase === "") ?? { phase: "", steps: [], notFused: 0 };
    const rest = lanes.filter((lane) => lane !== shared);
    const rows = [];
    if (source || shared.steps.length) rows.push(this.lane(shared, source));
    for (const lane of rest) rows.push(this.lane(lane, null));
    if (core.findings.length) rows.push(this.findings());
    put(this.element, rows.length ? rows : h("p", { class: "note" }, core.words.noStage));
    this.press(this.shown);
    this.mark(this.app.selection.marks);
  }

  /**
   * Shows which panes are open.
   * @param {Set<string>} keys
   */
  press(keys) {
    this.shown = keys;
    for (const [key, { button }] of this.cards) button.setAttribute("aria-pressed", String(keys.has(key)));
  }

  /**
   * Shows which stages hold something that is lit.
   * @param {Marks} marks
   */
  mark(marks) {
    const lit = litStages(marks, this.app.model.index.stages);
    for (const card of this.cards.values()) {
      const bits = card.stages.reduce((all, stage) => all | (lit.get(stage) ?? 0), 0);
      if (bits === card.bits) continue;
      card.bits = bits;
      const colours = coloursOf(bits);
      put(
        card.dots,
        colours.map(() => h("i", { class: "strip-dot" })),
        colours.length === 0 && bits & HOVER ? h("i", { class: "strip-dot strip-dot-hover" }) : null,
      );
    }
  }

  /**
   * @param {Lane} lane
   * @param {HTMLElement | null} first
   */
  lane(lane, first) {
    const cards = first ? [first] : [];
    const fusion = fusionOf(lane);
    for (const step of lane.steps) {
      cards.push(step.kind === "none" || step.missing || step.stage < 0 ? missingCard(step) : this.stepCard(step));
      if (fusion && step === fusion.groups) cards.push(this.fusionCard(fusion.loops, fusion.groups));
    }
    const name = lane.phase || "capture";
    return h(
      "div",
      { class: `strip-lane phase-lane-${lane.phase || "shared"}` },
      h("div", { class: `strip-phase phase-${lane.phase || "shared"}` }, name),
      h(
        "ol",
        { class: "strip-cards", "aria-label": `${name} stages` },
        cards.map((card) => h("li", {}, card)),
      ),
    );
  }

  /** Panes with the reasons for it all: no stages, and in no order. */
  findings() {
    const { findings } = this.app.model.core;
    const cards = findings.map((finding, number) => {
      if (finding.missing) return unknownCard(finding);
      return this.card(placeOfFinding(finding.key, number), [], finding.title, [finding.fact], "", finding.intro);
    });
    const unknown = findings.map((finding) => finding.missing !== "");
    const items = [...cards.filter((_, i) => !unknown[i]), ...cards.filter((_, i) => unknown[i])];
    return h(
      "div",
      { class: "strip-lane phase-lane-shared strip-why" },
      h("div", { class: "strip-phase phase-shared" }, "why"),
      h(
        "ul",
        { class: "strip-cards", "aria-label": "why it is so" },
        items.map((card) => h("li", {}, card)),
      ),
    );
  }

  sourceCard() {
    const { sources, words } = this.app.model.core;
    const functions = sources.length === 1 ? "1 function" : `${sources.length} functions`;
    return this.card(placeOf(0), [0], "Python source", [functions], "", words.sources);
  }

  /** @param {Step} step */
  stepCard(step) {
    const facts = step.unchanged ? [...step.facts, `= ${step.unchanged}`] : step.facts;
    const meaning = step.same ? `${step.meaning}; ${step.same}: ${this.app.model.core.words.unchanged}` : step.meaning;
    return this.card(placeOf(step.stage), [step.stage], step.title, facts, step.time, meaning);
  }

  /**
   * @param {Step} loops
   * @param {Step} groups
   */
  fusionCard(loops, groups) {
    const [from, to] = [loops, groups].map((step) => step.facts[0] ?? step.title);
    const facts = [`${from.split(" ")[0]} → ${to.split(" ")[0]}`];
    const meaning = `${from} → ${to}: which loops went into which group, and what that saved`;
    return this.card(placeOf(groups.stage, true), [loops.stage, groups.stage], "fusion", facts, "", meaning);
  }

  /**
   * @param {Place} place
   * @param {number[]} stages that it shows
   * @param {string} title
   * @param {string[]} facts
   * @param {string} time
   * @param {string} meaning
   */
  card(place, stages, title, facts, time, meaning) {
    const dots = h("span", { class: "card-dots", "aria-hidden": "true" });
    const element = h(
      "button",
      {
        type: "button",
        class: place.fusion ? "card card-fusion" : place.finding ? "card card-why" : "card",
        "aria-pressed": "false",
        "data-stage": place.stage,
        "data-finding": place.finding || null,
        title: meaning,
        onclick: () => this.toggle(place),
      },
      h("span", { class: "card-title" }, title, dots),
      h(
        "span",
        { class: "card-facts" },
        h(
          "span",
          {},
          facts[0] ?? "",
          facts.length > 1 ? h("span", { class: "card-more" }, ` · ${facts.slice(1).join(" · ")}`) : null,
        ),
        time ? h("span", { class: "card-time" }, time) : null,
      ),
    );
    this.cards.set(place.key, { place, stages, button: element, dots, bits: 0 });
    return element;
  }
}

/**
 * A stage that was not seen, or that there is none of: the reason in words. It has nothing to open, but can be
 * reached and read.
 * @param {Step} step
 */
function missingCard(step) {
  const none = step.kind === "none";
  return h(
    "div",
    {
      class: none ? "card card-none" : "card card-missing",
      tabindex: "0",
      role: "note",
      "data-key": step.key,
      title: step.missing,
    },
    h("span", { class: "card-title" }, step.title, h("span", { class: "card-unseen" }, none ? "none" : "not seen")),
    h("span", { class: "card-reason" }, step.missing),
  );
}

/**
 * A finding that the record says nothing of.
 * @param {FindingHead} finding
 */
function unknownCard({ title, missing }) {
  return h(
    "div",
    { class: "card card-unknown", tabindex: "0", role: "note", title: missing },
    h("span", { class: "card-title" }, title),
    h("span", { class: "card-reason" }, missing),
  );
}

/**
 * The bits of everything lit, by stage.
 * @param {Marks} marks
 * @param {IndexStage[]} stages
 * @returns {Map<number, number>}
 */
export function litStages(marks, stages) {
  /** @type {Map<number, number>} */
  const lit = new Map();
  let at = 0;
  for (const [item, bits] of marks) {
    // Items of one stage often follow each other.
    if (item < stages[at].start || item >= stages[at].start + stages[at].count) {
      at = stages.findIndex((stage) => item >= stage.start && item < stage.start + stage.count);
      if (at < 0) {
        at = 0;
        continue;
      }
    }
    lit.set(at, (lit.get(at) ?? 0) | bits);
  }
  return lit;
}
