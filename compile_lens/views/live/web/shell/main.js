// The page of a capture: its parts below each other, and what they tell each other.

import { Chain } from "../data/chain.js";
import { Model, PYTHON } from "../data/model.js";
import { Payload } from "../data/payload.js";
import { Reach } from "../data/reasons.js";
import { Selection } from "../data/selection.js";
import { h, plural, put, turnOfOthers } from "../dom.js";
import { additions } from "../code/additions.js";
import { AddressBar, noteTrouble } from "./address_bar.js";
import { OUTCOME, placeOf, placeOfFinding, STORY, TRACED } from "../panes/arrangement.js";
import { CompilationTabs } from "./compilation_tabs.js";
import { Details } from "../panes/details.js";
import { FindAll } from "./find.js";
import { toFirstHits } from "../panes/reveal.js";
import { Flow } from "../chain/flow.js";
import { pageHeader } from "./header.js";
import { Inspector } from "../chain/inspector.js";
import { actOnLetter, listenToKeys, showKeys } from "../controls/keys.js";
import { endedBadly } from "../findings/outcome_pane.js";
import { Panes } from "../panes/panes.js";
import { Paper } from "./print.js";
import { decodeState, encodeState, linkTrouble } from "./permalink.js";
import { Strip } from "../chain/strip.js";

/** @import { App, Pin } from "../data/app.d.ts" */
/** @import { PageState } from "./permalink.js" */
/** @import { OpeningAnswer } from "../types.d.ts" */

/**
 * @param {HTMLElement} host
 * @param {Record<string, string>} parts the page's data by name, packed
 * @param {(packed: string) => Promise<string>} unpack
 * @param {boolean} standalone whether the page is its own, and has an address
 */
export async function openCapture(host, parts, unpack, standalone) {
  const payload = new Payload(parts, unpack);
  const [core, index] = await Promise.all([payload.get("core"), payload.get("index")]);
  // The page may draw and answer between the steps.
  await turnOfOthers();
  const shell = new Shell(host, new Model(core, index, payload), standalone);
  await turnOfOthers();
  return shell;
}

/** The app. */
class Shell {
  /**
   * @param {HTMLElement} host
   * @param {Model} model
   * @param {boolean} standalone whether the page is its own, and has an address
   */
  constructor(host, model, standalone) {
    this.host = host;
    this.model = model;
    this.standalone = standalone;
    this.compilation = 0;
    this.voice = h("p", { class: "unseen", role: "status", "aria-live": "polite" });
    const chain = new Chain(model.index);
    const selection = new Selection(chain, (items) => {
      const { units } = model;
      const own = units.ofAll(items);
      // A line that only calls others keeps the colours of what it calls.
      return own.length ? own : units.ofAll(items.flatMap((item) => chain.below(item)));
    });
    /** @type {App} */
    this.app = {
      model,
      chain,
      selection,
      compilation: 0,
      choose: (number) => this.choose(number),
      say: (sentence) => put(this.voice, sentence),
      show: (stage, items) => void this.panes.reveal(stage, items),
      beside: (stage, items) => void toFirstHits(this.app, this.panes.shown, placeOf(stage).key, chain.own(items)),
    };
    this.details = new Details(this.app, standalone);
    this.strip = new Strip(this.app, (place) => this.panes.toggle(place));
    this.tabs = new CompilationTabs(
      model.core,
      (number) => this.choose(number),
      () => this.panes.show(placeOfFinding(TRACED, 0)),
    );
    this.panes = new Panes(this.app, { changed: () => this.arranged(), closed: (key) => this.flow.focus(key) });
    this.inspector = new Inspector(this.app);
    this.find = new FindAll(
      () => this.panes.shown.map((frame) => frame.element),
      () => this.flow.focusPhase(),
      additions.findTotal?.(this),
    );
    this.flow = new Flow(
      this.app,
      {
        toggle: (place) => this.panes.toggle(place),
        show: (place) => this.panes.show(place),
        phase: (phase) => this.panes.choosePhase(phase),
        list: (stage) => this.inspector.showStage(stage),
      },
      {
        stages: this.strip.element,
        tabs: model.core.compilations.length > 1 ? this.tabs.element : null,
        chain: this.inspector.element,
      },
    );
    this.trouble = h("p", { class: "link-trouble", role: "status", hidden: true });
    /** @type {HTMLElement} */
    this.element = h(
      "div",
      { class: standalone ? "shell shell-standalone" : "shell" },
      h(
        "div",
        { class: "shell-first" },
        pageHeader(model.core, this.find.element, standalone, (more) => this.warned(more), additions.shareRow?.(this)),
        model.core.answers.length ? additions.answersRow?.(model.core.answers, (answer) => this.answer(answer)) : null,
        this.flow.element,
        this.trouble,
        this.panes.element,
      ),
      this.details.element,
      this.voice,
    );
    this.bar = new AddressBar(() => this.hash());
    this.paper = new Paper({
      header: /** @type {HTMLElement} */ (this.element.querySelector(".top")),
      flow: this.flow.element,
      frames: () => this.panes.shown,
      closed: () => this.closed(),
    });
    additions.complete?.(this);
    this.begun = false;
    this.resting = false;
    this.restless = false;
    /** The pins before; null while a link is followed. @type {Pin[] | null} */
    this.pins = [];
  }

  begin() {
    this.panes.width = this.host.clientWidth;
    const linked = this.standalone ? decodeState(location.hash, this.model.index, this.findings()) : null;
    this.app.selection.subscribe((what) => {
      this.element.classList.toggle("spot", this.app.selection.units !== null);
      this.panes.mark();
      this.strip.mark(this.app.selection.marks);
      this.flow.mark();
      void this.rest();
      if (what === "pins") this.lead();
    });
    this.choose(linked?.compilation ?? this.model.core.first);
    if (linked) this.restore(linked);
    this.checkLink();
    listenToKeys(this.host, this.standalone, (event) => this.key(event));
    // The observer goes with the host; nothing of a notebook's page outlives the output.
    new ResizeObserver(() => this.panes.resized(this.host.clientWidth)).observe(this.host);
    if (this.standalone) {
      this.element.after(this.paper.element);
      this.paper.begin(this.host);
      this.bar.follow(() => {
        const state = decodeState(location.hash, this.model.index, this.findings());
        this.checkLink();
        const focused = this.focused();
        if (state) this.restore(state);
        else if (location.hash === "") this.reset();
        // What had the focus may be gone with its pane.
        if (focused && !this.focused()) this.flow.focusPhase();
      });
    }
    this.begun = true;
  }

  /** The element that has the focus, if that is in the app. */
  focused() {
    return /** @type {ShadowRoot | Document} */ (this.element.getRootNode()).activeElement;
  }

  /**
   * Shows a compilation in the strip, the sections and the panes.
   * @param {number} number
   */
  choose(number) {
    this.compilation = number;
    this.app.compilation = number;
    this.tabs.choose(number);
    this.strip.choose(number);
    this.flow.choose(number);
    this.panes.choose(number);
  }

  /**
   * Goes to the next line that broke or compilation that was made again; to the sections where none is shown.
   * @param {string} more
   */
  warned(more) {
    const there = more !== "eager" && this.model.core.sources.length > 0;
    void Promise.resolve(there && this.panes.next(more)).then((moved) => moved || this.details.open());
  }

  /** Goes to what an answer is about. @param {OpeningAnswer} answer */
  answer({ item, kernel, finding }) {
    const at = this.model.core.findings.findIndex(({ key, missing }) => key === finding && !missing);
    if (at >= 0) this.panes.show(placeOfFinding(finding, at));
    else if (item < 0) this.details.open();
    else {
      this.app.selection.replace([{ items: [item], name: this.model.name(item) }]);
      for (const one of [item, kernel]) if (one >= 0) this.app.show(this.model.stageOf(one), [one]);
    }
  }

  /** Keys of the findings that can be shown. */
  findings() {
    const { core } = this.model;
    const keys = core.findings.map(({ key, missing }) => (missing ? "" : key));
    return [...keys, STORY, TRACED, endedBadly(core) ? OUTCOME : ""];
  }

  /** Stages of this compilation that are not open, and the other compilations, by name. */
  closed() {
    const open = new Set(this.panes.shown.map(({ place }) => place.key));
    const stages = this.model.index.stages
      .map((stage, number) => ({ compilation: stage.compilation, number }))
      .filter(({ compilation, number }) => compilation === this.compilation && !open.has(placeOf(number).key));
    const others = this.model.core.compilations.length - 1;
    return [
      ...stages.map(({ number }) => this.model.stageTitle(number)),
      ...(others > 0 ? [plural(others, "other compilation")] : []),
    ];
  }

  /** Says where the address is not that of this page. */
  checkLink() {
    noteTrouble(this.trouble, this.standalone ? linkTrouble(location.hash, this.model.index, this.findings()) : "");
  }

  /** @param {PageState} state */
  restore(state) {
    if (state.compilation !== this.compilation) this.choose(state.compilation);
    this.flow.turn(state.phase);
    // Pins first, so that panes open where these are. A link says itself which compilation is shown.
    this.pins = null;
    this.app.selection.replace(state.pins);
    if (state.panes) this.panes.restore(state.panes);
    else this.panes.unchoose();
  }

  /** Shows the page as it was opened. */
  reset() {
    this.panes.unchoose();
    this.app.selection.clear();
    this.choose(this.model.core.first);
    this.flow.turn();
  }

  /** A line of the source that is pinned and of which only other compilations have something opens the first of these. */
  lead() {
    const { pins } = this.app.selection;
    const fresh = pins.find((pin) => this.pins && !this.pins.includes(pin));
    this.pins = [...pins];
    if (fresh?.items.every((item) => this.model.stageOf(item) === PYTHON)) {
      const [other] = new Reach(this.model, this.app.chain, fresh.items).others(this.compilation);
      if (other !== undefined) {
        this.choose(other);
        this.app.say(`opened compilation ${this.model.core.compilations[other].id}`);
      }
    }
    this.address();
  }

  /** Once what is lit has been painted: the words about it, and the places where it is. */
  async rest() {
    this.restless = true;
    if (this.resting) return;
    this.resting = true;
    while (this.restless) {
      this.restless = false;
      await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
      this.inspector.update();
      await turnOfOthers();
      await this.panes.follow();
    }
    this.resting = false;
  }

  /** Panes were opened, closed or changed. */
  arranged() {
    const shown = new Set(this.panes.shown.map((frame) => frame.place.key));
    this.strip.press(shown);
    this.flow.press(shown);
    this.address();
  }

  /** Writes what is shown into the address, once it rests. */
  address() {
    if (this.standalone && this.begun) this.bar.write();
  }

  /** The hash that names what is shown. */
  hash() {
    const panes = this.panes.chosen
      ? this.panes.groups.map((group) => group.map((place) => ({ place, view: this.panes.frame(place, "").view })))
      : null;
    const { compilation, flow } = this;
    const phase = flow.phase === flow.usual ? "" : flow.phase;
    return encodeState({ compilation, phase, panes, pins: this.app.selection.pins }, this.model.index);
  }

  /**
   * Letters that lead somewhere. Returns true if it was one.
   * @param {KeyboardEvent} event
   */
  letter(event) {
    const why = () => {
      const at = this.model.core.findings.findIndex(({ key, missing }) => key === "fusion" && !missing);
      if (at >= 0) this.panes.show(placeOfFinding("fusion", at));
    };
    const phase = (/** @type {string[]} */ ...names) => {
      const known = this.model.core.compilations[this.compilation]?.lanes.find((lane) => names.includes(lane.phase));
      if (!known) return;
      this.flow.choosePhase(known.phase);
      // What had the focus may be gone with its pane.
      this.flow.focusPhase();
    };
    return actOnLetter(event, {
      ...this.find.letters,
      f: () => phase("forward", "inference"),
      b: () => phase("backward"),
      m: () => this.panes.enlargeUsed(),
      w: why,
      "?": () => showKeys(this.element),
    });
  }

  /**
   * Keys that the app uses stop here: a notebook would take a letter for a command of its own.
   * @param {KeyboardEvent} event
   */
  key(event) {
    if (this.letter(event)) return;
    const command = event.ctrlKey || event.metaKey || event.altKey;
    if (event.key === "Tab" || (command && event.key !== "Enter")) return;
    event.stopPropagation();
    if (event.key !== "Escape" || event.defaultPrevented) return;
    if (this.panes.large) {
      this.panes.enlarge(this.panes.large);
      return;
    }
    const { pins, hovered } = this.app.selection;
    if (pins.length === 0 && hovered.length === 0) return;
    this.app.selection.clear();
  }
}
