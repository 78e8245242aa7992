// The reasons why a stage shows nothing of a chain. Every word rests on a fact of the record: a stage that was
// not seen, a chain that ends, a phase, a kind. Where the record holds no such fact, the words say that.

import { shortened } from "../dom.js";
import { PYTHON } from "./model.js";

/** @import { Step } from "../types.d.ts" */
/** @import { Chain } from "./chain.js" */
/** @import { Model } from "./model.js" */

/**
 * Before which stages the kind of an item alone says why it goes no further.
 * @type {Record<string, string[]>}
 */
const ENDING_KINDS = {
  input: ["code"],
  output: ["loops", "groups", "code"],
  constant: ["loops", "groups", "code"],
  symbol: ["loops", "groups", "code"],
  view: ["loops", "groups", "code"],
  nop: ["code"],
};

/** The chain of some items, sorted into stages. */
export class Reach {
  /**
   * @param {Model} model
   * @param {Chain} chain
   * @param {number[]} items at least one
   */
  constructor(model, chain, items) {
    this.model = model;
    this.chain = chain;
    this.own = [...new Set(items)];
    /** Nearest first. */
    this.up = chain.ancestors(this.own);
    /** Nearest first. */
    this.down = chain.descendants(this.own);
    /** @type {Set<number>} */
    this.all = new Set([...this.up, ...this.own, ...this.down]);
    /** The items that stand in it for a derivative alone. */
    this.needed = chain.needed(this.own, this.up, this.down);
    /** Items of the chain by stage, each list in the order of the record. @type {Map<number, number[]>} */
    this.stages = this.sorted(this.all);
    /** Stages of the items themselves. */
    this.home = [...this.sorted(this.own).keys()];
  }

  /** The chain without what stands in it for a derivative alone. */
  get main() {
    return new Set([...this.all].filter((item) => !this.needed.has(item)));
  }

  /**
   * In words what some of `needed` are there for.
   * @param {number[]} items of one stage
   */
  neededFor(items) {
    const { chain } = this;
    const up = new Set(this.up);
    if (items.every((item) => up.has(item) && chain.derived[item] === 0)) return "forward op of this gradient";
    const makers = items.filter((item) => chain.derived[item] === 1);
    const all = makers.length ? makers : [...this.all].filter((item) => chain.servesForward(item));
    const words = [...new Set(all.flatMap((item) => chain.derivatives.get(item)?.split(", ") ?? []).filter(Boolean))];
    const some = words.slice(0, 3).join(", ") + (words.length > 3 ? ` and ${words.length - 3} more` : "");
    return `needed by the derivative${some ? ` of ${some}` : ""}`;
  }

  /** @param {Iterable<number>} items without repeats @returns {Map<number, number[]>} */
  sorted(items) {
    const byStage = new Map();
    let stage = -1;
    let end = -1;
    for (const item of Uint32Array.from(items).sort()) {
      if (item >= end) {
        stage = this.model.stageOf(item);
        end = this.model.index.stages[stage].start + this.model.index.stages[stage].count;
        byStage.set(stage, []);
      }
      byStage.get(stage).push(item);
    }
    return byStage;
  }

  /**
   * The reason why a stage holds nothing of the chain; "" if it does.
   * @param {number} stage
   * @returns {string}
   */
  why(stage) {
    if (this.stages.has(stage)) return "";
    const { compilation, count } = this.model.index.stages[stage];
    if (stage === PYTHON) return this.whyUp(stage);
    if (count === 0) return "the stage is empty";
    const homes = new Set([...this.stages.keys()].map((s) => this.model.index.stages[s].compilation));
    if (!homes.has(compilation))
      return this.elsewhere(
        [...homes].filter((c) => c >= 0),
        compilation,
      );
    return this.otherPhase(stage) || (stage < Math.min(...this.home) ? this.whyUp(stage) : this.whyDown(stage));
  }

  /**
   * The reason why a step of the strip holds nothing of the chain; "" if it does.
   * @param {Step} step
   * @returns {string}
   */
  whyAt(step) {
    if (step.stage >= 0) return this.why(step.stage);
    return `the stage ${absent(step)}`;
  }

  /**
   * Compilations that hold what another one lacks, those with code of it first; none if that holds some.
   * @param {number} compilation
   * @returns {number[]}
   */
  others(compilation) {
    const { stages } = this.model.index;
    const all = [...this.stages.keys()];
    const coded = [...all.filter((one) => this.model.isCode(one)), ...all];
    const others = [...new Set(coded.map((one) => stages[one].compilation))].filter((one) => one >= 0);
    return compilation < 0 || others.includes(compilation) ? [] : others;
  }

  /** @param {number[]} homes @param {number} wanted */
  elsewhere(homes, wanted) {
    if (homes.length === 0) return "the record names nothing that came from it";
    const ids = homes.map((c) => this.model.core.compilations[c].id);
    const here = this.model.core.compilations[wanted].id;
    const named = ids.length > 3 ? `${ids.slice(0, 3).join(", ")} and ${ids.length - 3} more` : ids.join(", ");
    if (this.home.every((s) => s === PYTHON)) return `what it became was compiled in ${named}, not in ${here}`;
    return `${this.it("is", "are")} part of compilation ${named}; this stage belongs to ${here}`;
  }

  /** Items that stand in the other phase themselves. @param {number} stage */
  otherPhase(stage) {
    const wanted = this.model.phase(stage);
    const phases = new Set(this.home.map((s) => this.model.phase(s)));
    if (!wanted || phases.has(wanted) || phases.has("")) return "";
    const words = `${this.it("is", "are")} part of the ${[...phases].join(" and ")}; this stage belongs to the ${wanted}`;
    const { start, count } = this.model.index.stages[stage];
    const makers = new Set(this.chain.ancestors(Array.from({ length: count }, (_, i) => start + i)));
    const both = this.up.find((item) => makers.has(item) && this.model.stageOf(item) !== PYTHON);
    return both === undefined ? words : `${words} (${this.at(both)} has a part in both)`;
  }

  /** The stage is nearer to Python than the items. @param {number} stage */
  whyUp(stage) {
    const { model } = this;
    for (const item of [...this.own, ...this.up]) {
      if (model.stageOf(item) < stage) continue;
      const over = this.chain.above(item).find((other) => model.stageOf(other) < stage);
      if (over !== undefined) return this.past(item, over, model.noOrigin.get(item));
    }
    const ends = [...this.own, ...this.up].filter((item) => this.chain.above(item).length === 0);
    if (ends.length === 0) return "the record names nothing here that it came from";
    const tops = ends.map((item) => model.stageOf(item));
    const top = Math.min(...tops);
    const end =
      ends.filter((_, i) => tops[i] === top).find((item) => model.noOrigin.get(item)) ?? ends[tops.indexOf(top)];
    const reason =
      model.noOrigin.get(end) ||
      this.unseen(stage, top, "") ||
      this.startsHere(end, stage) ||
      "the record names no origin for it";
    const single = this.own.length === 1 && end === this.own[0];
    return single ? reason : `the chain upward ends at ${this.at(end)}: ${reason}`;
  }

  /** The stage is nearer to the kernel than the items. @param {number} stage */
  whyDown(stage) {
    const { model } = this;
    const wanted = model.phase(stage);
    const on = [...this.stages.keys()].filter((s) => this.leadsTo(s, stage));
    const beyond = [...this.stages.keys()].find(
      (s) => s > stage && model.phase(s) === wanted && this.sameCompilation(s, stage),
    );
    if (beyond !== undefined) {
      for (const item of this.stages.get(beyond) ?? []) {
        const over = this.chain.above(item).find((other) => model.stageOf(other) < stage && this.all.has(other));
        if (over !== undefined) return this.past(item, over, undefined);
      }
    }
    const last = Math.max(...on, ...this.home.filter((s) => s < stage));
    const unseen = this.unseen(last, stage, wanted);
    if (unseen) return this.lastSeen(last, unseen);
    const other = [...this.stages.keys()].find(
      (s) => model.phase(s) && model.phase(s) !== wanted && this.sameCompilation(s, stage),
    );
    if (other !== undefined && !model.phase(last)) {
      return `${this.own.length > 1 ? "they" : "it"} became part of the ${model.phase(other)} only; this stage belongs to the ${wanted}`;
    }
    const next = model.index.stages.findIndex(
      (s, i) => i > last && (i === stage || (s.count > 0 && this.leadsTo(i, stage))),
    );
    const tips = this.stages.get(last) ?? [];
    const before = model.index.stages[next].key.split(".").pop() ?? "";
    const kinds = new Set(tips.map((item) => model.kind(item)));
    const [kind] = kinds;
    if (kinds.size !== 1 || !ENDING_KINDS[kind]?.includes(before)) {
      return this.lastSeen(
        last,
        `the record names nothing in ${model.index.stages[next].title} that came from ${this.own.length > 1 ? "them" : "it"}${this.orphans(next)}`,
      );
    }
    const is = this.is(kind);
    const what = kind === "view" && before === "loops" ? `${is}, so no loop was made of it` : is;
    if (this.home.includes(last) && tips.length === 1) return `it is ${what}`;
    return this.lastSeen(last, tips.length > 1 ? `each ${what}` : what, true);
  }

  /**
   * Operations of a stage of which nobody knows what they came from, and may be of this; "" where there are none.
   * @param {number} stage
   */
  orphans(stage) {
    const { model } = this;
    const { start, count } = model.index.stages[stage];
    const nodes = Array.from({ length: count }, (_, i) => start + i).filter(
      (item) => model.noOrigin.get(item) === model.core.words.unsaidOrigin,
    );
    if (nodes.length === 0) return "";
    const names = nodes.slice(0, 3).map((item) => quotedName(labelOf(model, item)));
    const listed = nodes.length > 3 ? `${names.join(", ")} and ${nodes.length - 3} more` : names.join(", ");
    return `; ${listed} may have: ${model.core.words.unsaidOrigin}`;
  }

  /**
   * @param {number} last
   * @param {string} said
   * @param {boolean} [describes] whether the words describe what was seen last
   */
  lastSeen(last, said, describes = false) {
    if (this.home.includes(last) && !describes) return said;
    const tips = this.stages.get(last) ?? [];
    const names = tips.slice(0, 3).map((item) => quotedName(labelOf(this.model, item)));
    const listed = tips.length > 3 ? `${names.join(", ")} and ${tips.length - 3} more` : names.join(", ");
    return `${this.it("was", "were")} last seen in ${this.model.index.stages[last].title} as ${listed}${describes ? ", " : "; "}${said}`;
  }

  /**
   * The first stage that was not seen after one stage and before another. One that this compilation does not go through
   * keeps nothing from what follows it.
   * @param {number} above
   * @param {number} below
   * @param {string} phase
   */
  unseen(above, below, phase) {
    const { stages } = this.model.index;
    const { compilation } = stages[Math.max(above, below)];
    if (compilation < 0) return "";
    const lanes = this.model.core.compilations[compilation].lanes.filter((l) => l.phase === "" || l.phase === phase);
    const steps = lanes.flatMap((lane) => lane.steps.map((step) => ({ step, phase: lane.phase })));
    const from = steps.findIndex(({ step }) => step.stage === Math.min(above, below));
    const to = steps.findIndex(({ step }) => step.stage === Math.max(above, below));
    const gap = steps
      .slice(from + 1, to < 0 ? undefined : to)
      .find(({ step }) => step.stage < 0 && step.kind !== "none");
    if (!gap) return "";
    const title =
      gap.phase && gap.step.key !== gap.phase ? `${gap.phase} ${gap.step.title}` : gap.phase || gap.step.title;
    return `the stage between, ${title}, ${absent(gap.step)}`;
  }

  /** True if a stage stands on the way from Python to another one. @param {number} stage @param {number} target */
  leadsTo(stage, target) {
    if (stage === PYTHON) return true;
    const phase = this.model.phase(stage);
    return (
      stage < target && this.sameCompilation(stage, target) && (phase === "" || phase === this.model.phase(target))
    );
  }

  /** @param {number} one @param {number} other */
  sameCompilation(one, other) {
    return this.model.index.stages[one].compilation === this.model.index.stages[other].compilation;
  }

  /** Words for an item that no line of the program makes. @param {number} item @param {number} stage */
  startsHere(item, stage) {
    const kind = this.model.kind(item);
    return stage === PYTHON && kind !== "view" && kind !== "nop" && ENDING_KINDS[kind] ? this.is(kind) : "";
  }

  /** Words for an item of a kind that does no work. @param {string} kind @returns {string} */
  is(kind) {
    /** @type {Record<string, string>} */
    const words = this.model.core.words.noWork;
    return words[kind];
  }

  /** @param {number} below @param {number} above @param {string | undefined} reason */
  past(below, above, reason) {
    return `the record leads from ${this.at(below)} past this stage to ${this.at(above)}${reason ? `: ${reason}` : ""}`;
  }

  /** An item by name and stage. @param {number} item */
  at(item) {
    const stage = this.model.stageOf(item);
    const name = quotedName(labelOf(this.model, item));
    if (stage === PYTHON) return `line ${name}`;
    return `${name} in ${this.model.index.stages[stage].title}`;
  }

  /** @param {string} one @param {string} many */
  it(one, many) {
    return this.own.length > 1 ? `they ${many}` : `it ${one}`;
  }
}

/**
 * `/home/me/model.py:7` as `model.py:7`.
 * @param {string} place
 */
export function shortPlace(place) {
  return place.slice(Math.max(place.lastIndexOf("/"), place.lastIndexOf("\\")) + 1);
}

/**
 * The short name of an item; lines of kernels are counted as those of their module everywhere.
 * @param {Model} model
 * @param {number} item
 */
export function labelOf(model, item) {
  const name = model.name(item);
  if (model.kind(item) === "line") return `${name.slice(0, name.lastIndexOf(":"))}:${model.lineNumber(item)}`;
  return model.stageOf(item) === PYTHON ? shortPlace(name) : name;
}

/** @param {string} name */
function quotedName(name) {
  return `\`${shortened(name, 60)}\``;
}

/** The reason why a step of the strip is no stage that could be shown. @param {Step} step */
function absent({ kind, missing }) {
  return kind === "none" ? `does not exist here: ${missing}` : `was not seen: ${missing}`;
}
