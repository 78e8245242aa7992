// The frame around one pane: title, facts, graph or text, its own tools, close; and the wait until its data is read.
import { CodePane } from "../code/pane.js";
import { SourcePane } from "../code/source_pane.js";
import { TextPane } from "../code/text_pane.js";
import { PYTHON } from "../data/model.js";
import { button, focusPressed, h, put, shortened, turnOfOthers } from "../dom.js";
import { OutcomePane } from "../findings/outcome_pane.js";
import { FindingPane } from "../findings/pane.js";
import { StoryPane } from "../findings/story_pane.js";
import { FusionPane } from "../fusion/pane.js";
import { GraphPane } from "../graph/pane.js";
import { OUTCOME, STORY, TRACED } from "./arrangement.js";
import { noMatch } from "./no_match.js";
import { Scrolls } from "./scroll_positions.js";
import { fillTabs, tabStrip, titleWords } from "./tab_strip.js";
import { factsOf, titleOf } from "./tabs.js";
import { TracedPane } from "./tracing_pane.js";

/** @import { App, Marks, Pane } from "../data/app.d.ts" */
/** @import { Reach } from "../data/reasons.js" */
/** @import { GraphData } from "../types.d.ts" */
/** @import { Place } from "./arrangement.js" */
/** @import { FrameTab } from "./tab_strip.js" */

export class PaneFrame {
  /**
   * @param {App} app
   * @param {Place} place
   * @param {string} view `"graph"`, `"text"`, or "" for the usual one
   * @param {{ close: () => void, used: () => void, size: () => void, changed: () => void, choose: (compilation: number) => void }} tell
   */
  constructor(app, place, view, tell) {
    this.app = app;
    this.place = place;
    this.view = view;
    this.tell = tell;
    /** Views that were made, by name. @type {Map<string, Pane>} */
    this.panes = new Map();
    /** @type {Pane | null} */
    this.pane = null;
    /** @type {GraphData | null} */
    this.graph = null;
    this.closed = false;
    this.title = titleOf(app.model, place);
    /** @type {FrameTab[]} */
    this.tabs = [];
    this.strip = tabStrip();
    this.views = h("span", { class: "frame-views" });
    this.tools = h("div", { class: "frame-tools" });
    this.more = button("⋯", () => this.unfold(this.more.getAttribute("aria-expanded") !== "true"), {
      label: `more tools of ${this.title}`,
      class: "button frame-more",
    });
    this.more.setAttribute("aria-expanded", "false");
    this.more.hidden = true;
    // Who comes to one that is out of sight sees them all.
    this.tools.addEventListener("scroll", () => this.tools.scrollTop > 0 && this.unfold(true));
    // What was asked for is done, and they shall not lie on the pane any longer; a search goes on.
    this.tools.addEventListener("click", ({ target }) => {
      if (target instanceof Element && target.closest("button:not(.finder button)")) this.unfold(false);
    });
    // They wrap where they have too little room, and are higher then.
    this.watch = new ResizeObserver(() => this.fitTools());
    this.body = h("div", { class: "frame-body" });
    this.scrolls = new Scrolls(this.body);
    this.none = h("p", { class: "frame-none", hidden: true });
    const close = button("×", tell.close, { label: `close ${this.title}`, class: "button frame-close" });
    this.size = button("⤢", tell.size, { label: `enlarge ${this.title}`, class: "button frame-size", pressed: false });
    const { facts, meaning } = factsOf(app.model, place);
    const phase = place.finding ? "" : app.model.phase(place.stage);
    this.heading = h(
      "span",
      { class: `frame-title phase-${phase || "shared"}`, title: meaning },
      titleWords(this.title),
    );
    this.element = h(
      "section",
      {
        class: "frame",
        "aria-label": this.title,
        "data-stage": place.stage,
        "data-fusion": place.fusion,
        "data-finding": place.finding || null,
      },
      h(
        "div",
        { class: "frame-head" },
        this.heading,
        this.strip,
        h("span", { class: "frame-facts", title: facts }, facts),
        this.views,
        this.tools,
        this.more,
        this.size,
        close,
      ),
      this.none,
      this.body,
    );
    const head = /** @type {HTMLElement} */ (this.element.firstElementChild);
    head.addEventListener("focusout", ({ relatedTarget }) => {
      if (!(relatedTarget instanceof Node && head.contains(relatedTarget))) this.unfold(false);
    });
    this.element.addEventListener("pointerdown", tell.used);
    this.element.addEventListener("focusin", tell.used);
    this.element.addEventListener("keydown", (event) => this.search(event));
    this.ready = this.load();
  }

  /**
   * The browser's own search sees only the rows that are built: a pane of code has one that sees all.
   * @param {KeyboardEvent} event
   */
  search(event) {
    if (event.key !== "f" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
    const field = this.tools.querySelector(".finder-input");
    if (!(field instanceof HTMLInputElement)) return;
    if (this.tools.offsetWidth === 0) this.unfold(true);
    field.focus();
    field.select();
    event.preventDefault();
  }

  /** Reads the data and makes the pane. What goes wrong is said in the pane's place. */
  async load() {
    put(this.body, h("p", { class: "frame-wait", role: "status" }, `loading ${this.title} …`));
    try {
      await this.make();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      put(this.body, h("p", { class: "frame-error", role: "alert" }, `${this.title} cannot be shown: ${reason}`));
    }
  }

  async make() {
    const { model } = this.app;
    const { stage, fusion, finding } = this.place;
    if (finding === OUTCOME) {
      if (await this.turn()) this.put("outcome", () => new OutcomePane(this.app));
    } else if (finding === STORY) {
      const data = await model.payload.get("story");
      if (await this.turn()) this.put("story", () => new StoryPane(this.app, data));
    } else if (finding === TRACED) {
      if (await this.turn()) this.put("traced", () => new TracedPane(this.app));
    } else if (finding) {
      const head = model.finding(finding);
      const data = await model.payload.get(head.part);
      if (await this.turn()) this.put("finding", () => new FindingPane(this.app, head, data));
    } else if (fusion) {
      const { key, compilation } = model.index.stages[stage];
      const loops = model.stage(compilation, key.replace(/groups$/, "loops"));
      const [loopsData, groupsData] = await Promise.all([model.graph(loops), model.graph(stage)]);
      const { ledger } = model.core.compilations[compilation];
      if (await this.turn())
        this.put(
          "fusion",
          () => new FusionPane(this.app, this.title, { loops, groups: stage, loopsData, groupsData, ledger }),
        );
    } else if (stage === PYTHON) {
      if (await this.turn()) this.put("source", () => new SourcePane(this.app));
    } else if (model.isCode(stage)) {
      const data = await model.code(stage);
      if (!(await this.turn())) return;
      this.put("code", () => new CodePane(this.app, stage, data, new Map(), (page) => this.turned(page)));
      if (this.view === "module") this.pane?.turn?.("module");
    } else {
      const data = await model.graph(stage);
      if (!(await this.turn())) return;
      this.graph = data;
      this.show(this.view);
    }
  }

  /** Waits until the page has had time for itself; whether the frame is still wanted then. */
  async turn() {
    await turnOfOthers();
    return !this.closed;
  }

  /**
   * Shows a graph as a graph or as text; as a graph unless there is no drawing.
   * @param {string} view
   */
  show(view) {
    const data = this.graph;
    if (!data) {
      this.view = view;
      this.pane?.turn?.(view === "module" ? "module" : "kernel");
      return;
    }
    const drawn = data.scenes.some((scene) => scene.whole >= 0 || scene.folded >= 0);
    const written = data.code.text !== "";
    this.view = view === "text" && written ? "text" : view === "graph" || drawn || !written ? "graph" : "text";
    const { stage } = this.place;
    if (this.view === "graph") this.put("graph", () => new GraphPane(this.app, stage, data));
    else this.put("text", () => new TextPane(this.app, stage, data));
    if (!written) return;
    put(
      this.views,
      ["graph", "text"].map((name) =>
        button(name, () => this.choose(name), { class: "button frame-view", pressed: name === this.view }),
      ),
    );
  }

  /**
   * Shows what shares the pane as tabs, instead of a title, and whether it has the room of all panes.
   * @param {FrameTab[]} tabs
   * @param {boolean} large
   */
  head(tabs, large) {
    this.tabs = tabs;
    this.size.setAttribute("aria-pressed", String(large));
    this.size.textContent = large ? "⤡" : "⤢";
    this.size.title = large ? `put ${this.title} back (Esc)` : `give ${this.title} the room of all panes (m)`;
    this.showTabs();
  }

  showTabs() {
    this.heading.hidden = this.tabs.length > 0;
    fillTabs(this.strip, this.tabs, this.pane?.pageTabs?.() ?? []);
  }

  /**
   * Shows the kernels of a generated module or all of it, once it is read, and moves the focus to the tab.
   * @param {"" | "kernel" | "module"} page
   */
  async page(page) {
    await this.ready;
    if (this.closed) return;
    if (page) this.pane?.turn?.(page);
    focusPressed(this.strip);
  }

  /** @param {"kernel" | "module"} page of the code */
  turned(page) {
    this.view = page === "module" ? page : "";
    this.tell.changed();
  }

  /** Moves the focus to what gives the pane the room of all. */
  focusSize() {
    this.size.focus();
  }

  /** @param {string} view */
  choose(view) {
    if (view === this.view) return;
    this.show(view);
    focusPressed(this.views);
    this.tell.changed();
  }

  /**
   * Puts a view into the frame; it is made when it is first wanted.
   * @param {string} name
   * @param {() => Pane} make
   */
  put(name, make) {
    this.keepScroll();
    let pane = this.panes.get(name);
    const fresh = pane === undefined;
    if (pane === undefined) {
      pane = make();
      this.panes.set(name, pane);
    }
    this.pane = pane;
    put(this.body, pane.element);
    put(this.tools, pane.tools);
    this.showTabs();
    this.unfold(false);
    this.watch.disconnect();
    if (pane.tools) this.watch.observe(pane.tools);
    this.restoreScroll();
    pane.resized?.();
    pane.mark?.(this.app.selection.marks);
    const pinned = () => this.app.selection.pins.flatMap((pin) => [...this.app.chain.own(pin.items)]);
    if (fresh) this.follow(name === "source" ? pinned() : pinned().sort((a, b) => a - b));
  }

  /** @param {Marks} marks */
  mark(marks) {
    this.pane?.mark?.(marks);
  }

  /**
   * Brings the first of these items that this frame shows into view.
   * @param {number[]} items
   */
  reveal(items) {
    const own = this.own(items);
    if (own.length === 0 || !this.pane) return;
    if (!this.pane.reveal?.(own) && this.graph && this.view === "graph" && this.graph.code.text !== "") {
      this.show("text");
      this.pane.reveal?.(own);
    }
  }

  /**
   * As `reveal`, but stays with the view that is shown.
   * @param {number[]} items
   */
  follow(items) {
    const own = this.own(items);
    if (own.length) this.pane?.reveal?.(own);
  }

  /**
   * Brings what was clicked into view whole, where it is only seen in part.
   * @param {number[]} items
   */
  keepInView(items) {
    if (this.far(items)) this.follow(items);
  }

  /**
   * Pixels from what is in view here to the nearest of these items, 0 if nothing is known of that.
   * @param {number[]} items
   */
  far(items) {
    return this.pane?.far?.(this.own(items)) ?? 0;
  }

  /**
   * The items that are in the stages shown here.
   * @param {number[]} items
   */
  own(items) {
    const shown = this.stages().map((stage) => this.app.model.index.stages[stage]);
    return items.filter((item) => shown.some((stage) => item >= stage.start && item < stage.start + stage.count));
  }

  /**
   * Says why nothing of a pinned chain is here, where that is so.
   * @param {Reach | null} reach the chain of the last pin
   * @param {string} name of that pin
   * @param {boolean} [explained] another pane has explained already that it is part of another compilation
   * @returns {boolean} true if this one has
   */
  explain(reach, name, explained = false) {
    const { content, elsewhere } = noMatch(this.app, reach, name, this.stages(), this.tell.choose);
    this.none.hidden = content.length === 0 || (explained && elsewhere);
    put(this.none, content);
    return elsewhere;
  }

  /** Numbers of the stages that are shown here. */
  stages() {
    const { model } = this.app;
    const { stage, fusion, finding } = this.place;
    if (finding) return [];
    const { compilation, key } = model.index.stages[stage];
    return fusion ? [stage, model.stage(compilation, key.replace(/groups$/, "loops"))] : [stage];
  }

  /** Another compilation is shown. */
  recolour() {
    for (const pane of this.panes.values()) pane.recolour?.();
  }

  resized() {
    if (this.element.isConnected) this.pane?.resized?.();
  }

  /** Tools that do not fit into the head are behind a button. */
  fitTools() {
    if (this.more.getAttribute("aria-expanded") === "true") return;
    const seen = this.tools.offsetWidth > 0 || this.tools.childElementCount === 0;
    this.more.hidden = seen && this.tools.scrollHeight <= this.tools.clientHeight + 4;
  }

  /**
   * Shows all tools, in as many rows as they need, above what is below, or what fits.
   * @param {boolean} open
   */
  unfold(open) {
    // To put back what is not unfolded would lay out the page at each click on a tool.
    if (open === (this.more.getAttribute("aria-expanded") === "true")) return;
    this.more.setAttribute("aria-expanded", String(open));
    this.element.classList.toggle("tools-open", open);
    this.body.style.marginTop = open ? `${this.tools.offsetHeight}px` : "";
    if (!open) requestAnimationFrame(() => (this.tools.scrollTop = 0));
  }

  keepScroll() {
    if (this.element.isConnected && this.pane) this.scrolls.keep();
  }

  restoreScroll() {
    this.scrolls.restore();
  }

  close() {
    this.closed = true;
    this.watch.disconnect();
    for (const pane of this.panes.values()) pane.close?.();
    this.panes.clear();
  }
}
