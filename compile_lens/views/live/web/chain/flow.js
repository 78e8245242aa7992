// The row of the stages, from Python to the kernels: what each counts, and what led to the next. While something is
// pinned or pointed at, it is the chain of that.

import { labelOf } from "../data/reasons.js";
import { isNeeded, SELF } from "../data/selection.js";
import { button, focusPressed, grouped, h, meaning, plural, put, shortened } from "../dom.js";
import { placeOf } from "../panes/arrangement.js";
import { flowSteps, phasesOf } from "../panes/flow_steps.js";
import { Popover } from "../controls/popover.js";
import { phaseButton, stepWords } from "./flow_parts.js";
import { litStages } from "./strip.js";

/** @import { App } from "../data/app.d.ts" */
/** @import { Place } from "../panes/arrangement.js" */
/** @import { Noun, Verb } from "../panes/flow_steps.js" */

/** @typedef {{ noun: Noun, button: HTMLButtonElement, count: HTMLElement, what: HTMLElement, said: string }} Chip */

/** Names in a chip before the rest is only counted. */
const NAMES = 2;
/** Characters of them that a chip has room for; else it names the first alone. */
const ROOM = 14;

/** Characters of names that are whole on a chip; pixels of a letter of names and of a share, and beside them. */
const SHORT = 8;
const LETTER = { names: 7.85, share: 6.3, beside: 22 };
/** Kinds of what no stage counts, which a reader knows by name. */
const PLAIN = new Set(["input", "output", "view"]);

export class Flow {
  /**
   * @param {App} app
   * @param {{ toggle: (place: Place) => void, show: (place: Place) => void, phase: (phase: string) => void, list: (stage: number) => void }} tell
   * @param {{ stages: Element, tabs: Element | null, chain: Element }} popovers
   */
  constructor(app, tell, { stages, tabs, chain }) {
    this.app = app;
    this.tell = tell;
    this.number = 0;
    this.phase = app.model.core.phase;
    /** @type {Chip[]} */
    this.chips = [];
    this.shown = new Set();
    /** True if something of the row is being pressed. */
    this.pressed = false;
    this.release = () => {
      setTimeout(() => {
        this.pressed = false;
        this.mark();
      });
    };
    this.switch = h("div", { class: "flow-phases", role: "group", "aria-label": "phase" });
    this.row = h("ol", { class: "flow-steps", "aria-label": "from Python to the kernels" });
    this.all = button("⋯", () => undefined, {
      class: "button flow-all",
      label: "all stages, and what is known of why",
    });
    this.stages = new Popover(this.all, stages, { name: "all stages", right: true });
    // What was chosen there is not to be covered by it.
    stages.addEventListener("click", ({ target }) => {
      if (this.stages.element.hidden || !(target instanceof Element && target.closest("button.card"))) return;
      this.stages.set(false);
      this.all.focus();
    });
    this.which = h("button", { type: "button", class: "flow-which", hidden: tabs === null });
    this.tabs = tabs ? new Popover(this.which, tabs, { name: "compilations" }) : null;
    // The chain as a list opens from a chip.
    this.more = button("chain", () => undefined, {
      class: "button flow-chain",
      label: "the whole chain, and what is known of what is pinned",
    });
    this.more.hidden = true;
    this.chain = new Popover(this.more, chain, { name: "what is pinned", right: true });
    this.element = h(
      "nav",
      { class: "flow", "aria-label": "stages" },
      h("div", { class: "flow-scroll" }, this.which, this.switch, this.row),
      this.tabs?.element,
      h("div", { class: "flow-more" }, this.more, this.chain.element, this.all, this.stages.element),
    );
    this.element.addEventListener("pointerdown", () => this.hold());
  }

  /**
   * Shows the way of a compilation.
   * @param {number} number
   */
  choose(number) {
    this.number = number;
    const compilation = this.app.model.core.compilations[number];
    if (!this.phases.some(({ phase }) => phase === this.phase)) this.phase = this.phases[0]?.phase ?? "";
    if (compilation) {
      const count = this.app.model.core.compilations.length;
      put(
        this.which,
        h("span", { class: "flow-count" }, h("b", {}, compilation.id), ` ${shortened(compilation.name, 28)}`),
        h(
          "span",
          { class: "flow-what" },
          `${number + 1} of ${count}`,
          h("span", { class: "flow-wide" }, " compilations"),
          " ▾",
        ),
      );
    }
    this.show();
  }

  /** @param {string} phase */
  choosePhase(phase) {
    this.phase = phase;
    this.show();
    this.tell.phase(phase);
  }

  /** The phases of the compilation, the first of them first. */
  get phases() {
    const compilation = this.app.model.core.compilations[this.number];
    return compilation ? phasesOf(compilation) : [];
  }

  /** The phase that is shown before anyone chooses. */
  get usual() {
    const { phase } = this.app.model.core;
    return this.phases.some((one) => one.phase === phase) ? phase : (this.phases[0]?.phase ?? "");
  }

  /**
   * Shows the phase that an address names, the usual one where it names none.
   * @param {string} [phase]
   */
  turn(phase = this.usual) {
    if (phase !== this.phase && this.phases.some((one) => one.phase === phase)) this.choosePhase(phase);
  }

  /** Moves the focus to the phase that is shown. */
  focusPhase() {
    focusPressed(this.switch);
  }

  show() {
    const { core, index, units } = this.app.model;
    const { phases } = this;
    put(
      this.switch,
      phases.map(({ phase, figures }) =>
        phaseButton(phase, figures, phase === this.phase, () => this.choosePhase(phase)),
      ),
    );
    this.switch.hidden = phases.length === 0;
    this.chips = [];
    const lines = new Set(units.all.filter((one) => one.compilation === this.number).map(({ line }) => line)).size;
    const steps = flowSteps(core, index.stages, this.number, this.phase, lines);
    put(
      this.row,
      steps.map((step) => ("stage" in step ? this.chip(step) : this.arrow(step))),
    );
    this.press(this.shown);
    this.mark();
  }

  /** @param {Noun} noun */
  chip(noun) {
    const count = h("span", { class: "flow-count" }, noun.count);
    const what = h("span", { class: "flow-what" }, noun.what);
    const chip = h(
      "button",
      {
        type: "button",
        class: noun.stage < 0 ? "flow-noun flow-missing" : "flow-noun",
        "data-stage": noun.stage,
        "aria-pressed": "false",
        ...meaning(noun.missing || noun.meaning),
        onclick: () => this.click(noun),
      },
      count,
      what,
    );
    this.chips.push({ noun, button: chip, count, what, said: "" });
    return h("li", { class: `flow-step flow-${noun.name}` }, chip);
  }

  /** @param {Verb} verb */
  arrow({ name, note, place, stopped = false }) {
    const means = this.app.model.core.words.verbs[name.split(" ")[0]];
    const title = [note ? `${name}: ${note}` : name, means].filter(Boolean).join("\n");
    if (stopped || !place) {
      // Nothing to open: what was said of it stands beside the source.
      return h(
        "li",
        { class: stopped ? "flow-between flow-stopped" : "flow-between" },
        h("span", { class: "flow-verb flow-idle", ...meaning(means) }, stepWords(name, stopped ? "stopped here" : "")),
      );
    }
    const act = () => this.tell.show(place);
    const chip = h(
      "button",
      { type: "button", class: "flow-verb", ...meaning(means), title, onclick: act },
      stepWords(name, note),
    );
    return h("li", { class: "flow-between" }, chip);
  }

  /** @param {Noun} noun */
  click(noun) {
    if (noun.stage < 0) this.app.say(noun.missing);
    else if (this.app.selection.pins.length && this.litIn(noun.stage).length) {
      this.chain.set(true);
      this.tell.list(noun.stage);
    } else this.tell.toggle(placeOf(noun.stage));
  }

  /**
   * Shows which panes are open.
   * @param {Set<string>} keys
   */
  press(keys) {
    this.shown = keys;
    for (const { noun, button: made } of this.chips) {
      const open = keys.has(placeOf(noun.stage).key);
      made.setAttribute("aria-pressed", String(open));
      if (noun.stage >= 0) made.title = `${noun.meaning} (click: ${open ? "close" : "open"} the pane)`;
    }
  }

  /**
   * Moves the focus to the chip of a pane, or to what leads to all stages.
   * @param {string} key
   */
  focus(key) {
    (this.chips.find(({ noun }) => placeOf(noun.stage).key === key)?.button ?? this.all).focus();
  }

  /**
   * The items that are lit in a stage; lines of one kernel rather than the kernel.
   * @param {number} stage
   */
  litIn(stage) {
    const { model, selection } = this.app;
    const { start, count, kernels } = model.index.stages[stage];
    const lit = [];
    const { marks } = selection;
    // Whichever is shorter: what is lit, or the stage.
    if (marks.size > count) {
      for (let item = start; item < start + count; item++) if (marks.has(item)) lit.push(item);
    } else {
      for (const item of marks.keys()) if (item >= start && item < start + count) lit.push(item);
      lit.sort((a, b) => a - b);
    }
    // What is lit for a derivative alone is said where nothing else is.
    const own = lit.filter((item) => !isNeeded(marks.get(item) ?? 0));
    const shown = own.length ? own : lit;
    const first = start + kernels;
    const lines = kernels ? shown.filter((item) => item >= first) : [];
    const whole = kernels ? shown.filter((item) => item < first) : shown;
    return lines.length && whole.length < 2 ? lines : whole;
  }

  /** Keeps the row as it is until what is pressed has had its click: the focus that goes with it would change the row. */
  hold() {
    this.pressed = true;
    for (const name of ["pointerup", "pointercancel"]) window.addEventListener(name, this.release, { once: true });
  }

  /** The chips say what is lit, or what they count. */
  mark() {
    if (this.pressed) return;
    const { model, selection } = this.app;
    const lit = litStages(selection.marks, model.index.stages);
    const chain = selection.units !== null;
    this.element.classList.toggle("flow-lit", chain);
    this.more.hidden = selection.pins.length === 0;
    if (selection.pins.length === 0) this.chain.set(false);
    for (const chip of this.chips) {
      const { noun } = chip;
      const bits = chain && noun.stage >= 0 ? (lit.get(noun.stage) ?? 0) : 0;
      const beside = chain && noun.stage >= 0 ? ["none", `of ${noun.count}`] : [noun.count, noun.what];
      const either = chain && !bits && noun.stage >= 0 ? this.either(noun.stage) : [];
      if (either.length) beside[0] = either.map((item) => model.name(item)).join(" or ");
      const words = bits ? this.words(noun) : beside;
      chip.button.classList.toggle("lit", bits !== 0);
      if (words.join("\n") === chip.said) continue;
      chip.said = words.join("\n");
      // How many more there are is whole; the names give way.
      const [names, more = ""] = words[0].split(/(?= \+[\d,]+$)/);
      put(chip.count, h("span", { class: "flow-names", style: `--more:${more.length}ch` }, names), more);
      chip.what.textContent = words[1];
      const whole = words[0].length > SHORT ? more.length + 5 : words[0].length;
      const [least, most] = [whole, words[0].length].map(
        (letters) => `${Math.ceil(Math.max(letters * LETTER.names, words[1].length * LETTER.share)) + LETTER.beside}px`,
      );
      chip.button.parentElement?.setAttribute("style", `--least:${least};--most:${most}`);
    }
  }

  /**
   * Loops of which a line of a kernel is of one or more: its operator was inlined into several, and the record does not
   * say for which the line was written.
   * @param {number} stage
   */
  either(stage) {
    const { chain, model, selection } = this.app;
    const { start, count, key } = model.index.stages[stage];
    const names = [];
    for (const [item, mark] of key.endsWith(".loops") ? selection.marks : []) {
      // A line of a kernel stands in that.
      const [kernel] =
        mark & SELF && model.isCode(model.stageOf(item)) ? (chain.beside.get(item)?.slice(-1) ?? []) : [];
      if (kernel < item)
        for (const loop of chain.above(item).flatMap((above) => chain.below(above)))
          if (loop >= start && loop < start + count && chain.descendants([loop]).includes(kernel)) names.push(loop);
    }
    return [...new Set(names)];
  }

  /**
   * Whether no operator of a Python line is lit: it calls another line.
   * @param {number} item
   */
  calls(item) {
    const { model, selection } = this.app;
    return !model.units.of(item, this.number).some((unit) => selection.units?.has(unit));
  }

  /**
   * `cos, pow_2 +3`, `5 of 12 ops`.
   * @param {Noun} noun
   * @returns {string[]}
   */
  words(noun) {
    const { model } = this.app;
    const lit = this.litIn(noun.stage);
    // Names, how many more and the share are of one set: what the stage counts; where that is none, what it does not.
    const counted = lit.filter((item) => model.counts(item));
    const items = counted.length ? counted : lit;
    const { start, kernels } = model.index.stages[noun.stage];
    if (noun.stage === 0) items.sort((a, b) => Number(this.calls(a)) - Number(this.calls(b)));
    const line = (/** @type {number} */ item) => model.lineNumber(item);
    // Kernels by their numbers in the list; lines by their own.
    const nameOf = (/** @type {number} */ item) => {
      if (kernels && item >= start + kernels) return String(line(item));
      return kernels && items.length > 1 ? `#${item - start + 1}` : labelOf(model, item);
    };
    const names = [...new Set(items.slice(0, 40).map(nameOf))];
    const few = names.slice(0, NAMES).map((name) => shortened(name.replace(/^.*:/, "line "), 16));
    // How many more there are is not to be cut off.
    const short = few.join(", ").length > ROOM ? few.slice(0, 1) : few;
    const more = items.length - short.length;
    const words = `${short.join(", ")}${more > 0 ? ` +${grouped(more)}` : ""}`;
    if (items.length && isNeeded(this.app.selection.marks.get(items[0]) ?? 0)) return [words, "for a derivative"];
    if (kernels && items[0] >= start + kernels) return [words, plural(items.length, "code line")];
    if (noun.stage === 0) return [words, "Python"];
    // Without a figure nothing can be a share of it.
    if (Number.isNaN(Number.parseInt(noun.count, 10))) return [words, `${grouped(items.length)} lit`];
    if (counted.length) return [words, `${grouped(counted.length)} of ${noun.count}`];
    const kinds = new Set(lit.map((item) => model.kind(item)));
    const kind = kinds.size > 1 ? "" : [...kinds][0];
    const what = PLAIN.has(kind) ? kind : "node";
    return [words, `${plural(items.length, what)}, no ${noun.count.replace(/^\S+ |s$/g, "")}`];
  }
}
