// A stage as a graph: the drawing in its window, what opens and closes in it, and its links to the other panes.

import { grouped, h, plural, put, shortened } from "../dom.js";
import { Drawing } from "../drawing/drawing.js";
import { alike } from "../drawing/repeated_bodies.js";
import { around, restoring } from "./view_anchor.js";
import { Halos } from "../drawing/halos.js";
import { GraphInput } from "./input.js";
import { Minimap } from "./minimap.js";
import { Narrowing } from "./focus.js";
import { paperGraph } from "./print_graph.js";
import { boxesDrawn, closedBodies, Holders, initialForm, localNamed, MOST_BOXES } from "../drawing/scene.js";
import { nextSteps } from "./size_note.js";
import { NodeSearch } from "./search.js";
import { SearchBox } from "./search_box.js";
import { GraphTools } from "./tools.js";
import { Viewport } from "./viewport.js";
import { held, trunk } from "../drawing/walk.js";
import { GraphWords } from "../drawing/labels.js";

/** @import { App, Marks, Pane } from "../data/app.d.ts" */
/** @import { GraphData } from "../types.d.ts" */
/** @import { GraphCommands } from "./tools.js" */
/** @import { ViewState } from "./viewport.js" */
/** @import { BoxView, StubView } from "../drawing/views.js" */

const FLASH = 1600; // milliseconds for which a node that was gone to is shown

/** @implements {Pane} */
export class GraphPane {
  /**
   * @param {App} app
   * @param {number} stage
   * @param {GraphData} data
   * @param {GraphWords} [words]
   */
  constructor(app, stage, data, words) {
    const { start, count } = app.model.index.stages[stage];
    const names = app.model.index.names.slice(start, start + count);
    this.app = app;
    this.stage = stage;
    this.data = data;
    this.start = start;
    this.names = names;
    this.holders = new Holders(data);
    this.drawing = new Drawing(
      data,
      words ?? new GraphWords(data, names, app.model.core.words.saved),
      start,
      (items) => app.selection.isPinned(items),
      app.model.units,
      () => app.selection.units,
      new Halos(app, stage),
    );
    this.viewport = new Viewport(
      this.drawing.element,
      () => this.moved(),
      () => this.minimap.pan(),
    );
    this.minimap = new Minimap(this.viewport);
    this.input = new GraphInput(this);
    this.search = new SearchBox(
      new NodeSearch(data, names),
      {
        found: restoring(this, (locals) => this.found(locals)),
        go: (local) => this.goTo(local),
        leave: () => this.input.focus(this.drawing.roving),
      },
      app.say,
    );
    this.commands = new GraphTools(
      data.scenes.map((scene) => scene.name),
      this.makeCommands(),
      this.search.element,
    );
    this.narrowing = new Narrowing(this);
    this.note = h("p", { class: "graph-note", hidden: true });
    this.notice = h("p", { class: "graph-notice", hidden: true });
    this.tools = this.commands.element;
    this.element = h(
      "div",
      { class: "graph-pane" },
      this.note,
      this.notice,
      this.narrowing.element,
      h("div", { class: "graph-stage" }, this.viewport.element, this.minimap.element),
    );
    /** Bodies of the boxes that are open, in all scenes. @type {Set<number>} */
    this.open = new Set();
    /** Bodies that were shown. @type {Set<number>} */
    this.begun = new Set();
    this.scene = 0;
    /** @type {("whole" | "folded")[]} */
    this.forms = data.scenes.map((scene) => initialForm(data, scene));
    /** The view in which each body was left. @type {Map<number, ViewState>} */
    this.left = new Map();
    /** Items to bring into view once there is one. @type {number[]} */
    this.waiting = [];
    /** @type {Map<BoxView, number>} */
    this.flashes = new Map();
    this.show();
  }

  /** @returns {GraphCommands} */
  makeCommands() {
    return {
      scene: (scene) => this.choose(scene, this.forms[scene]),
      form: () => this.choose(this.scene, this.forms[this.scene] === "whole" ? "folded" : "whole"),
      open: () => this.openLevel(),
      close: () => this.closeAll(),
      neighbours: () => this.narrowing.start(null),
      zoom: (direction) => this.viewport.zoomBy(direction),
      actual: () => this.viewport.zoomTo(1),
      fit: () => this.viewport.fit(),
      kinds: (wanted) => this.drawing.element.classList.toggle("by-kind", wanted),
      map: (wanted) => this.minimap.want(wanted),
    };
  }

  /** The outermost body that is shown; -1 for none. */
  get body() {
    const scene = this.data.scenes[this.scene];
    return scene ? scene[this.forms[this.scene]] : -1;
  }

  /** The number of nodes of the graph that is shown. */
  get count() {
    return this.body < 0 ? 0 : this.data.bodies[this.body].boxes.reduce((sum, { members }) => sum + members.length, 0);
  }

  /**
   * Shows another graph, or the same in another form.
   * @param {number} scene
   * @param {"whole" | "folded"} form
   */
  choose(scene, form) {
    if (this.body >= 0 && this.viewport.started) this.left.set(this.body, this.viewport.state);
    if (scene !== this.scene) this.narrowing.forget();
    this.scene = scene;
    this.forms[scene] = form;
    this.show();
  }

  show() {
    const { drawing, body } = this;
    this.tell("");
    this.openFirsts();
    drawing.show(body, this.open);
    this.input.last = null;
    this.fitted();
    this.viewport.start((height, width) => trunk(drawing.boxes, height, width), this.left.get(body));
    this.minimap.moved();
    this.describe();
    this.narrowing.update();
  }

  /** Opens the first of layers that are alike. Once: who closes it has closed it. */
  openFirsts() {
    const { body, data } = this;
    if (body < 0 || this.begun.has(body)) return;
    this.begun.add(body);
    const { firsts } = alike(data, body);
    const open = new Set([...this.open, ...firsts]);
    if (boxesDrawn(data, body, open) <= MOST_BOXES) this.open = open;
  }

  /** Says what the drawing is, and what it is not. */
  describe() {
    const scene = this.data.scenes[this.scene];
    const title = this.app.model.stageTitle(this.stage);
    const name = this.scene > 0 ? `${scene.name} of ${title}` : title;
    this.drawing.element.setAttribute("aria-label", `graph of ${shortened(name, 200)}: ${plural(this.count, "node")}`);
    const notes = [scene?.note ?? "there is no drawing"];
    if (this.body < 0 && !notes[0]) notes[0] = "this graph was not drawn";
    notes.push(this.app.model.core.noSource);
    put(this.note, [notes.filter(Boolean).join(" "), ...nextSteps(this)]);
    this.note.hidden = this.note.textContent === "";
    this.viewport.element.hidden = this.body < 0;
  }

  /** Brings controls and map up to date with the drawing. */
  fitted() {
    const { drawing, body, data } = this;
    this.viewport.setSize(drawing.width, drawing.height);
    this.minimap.draw(drawing.boxes.map((view) => view.at));
    this.minimap.light(drawing.highlighting.lit.keys());
    const scene = data.scenes[this.scene];
    this.commands.update({
      scene: this.scene,
      forms: scene !== undefined && scene.whole >= 0 && scene.folded >= 0,
      folded: this.forms[this.scene] === "folded",
      closable: drawing.boxes.some((view) => view.inside !== null),
      openable: body >= 0 && closedBodies(data, body, this.open).length > 0,
    });
  }

  /** The window shows another part of the drawing. */
  moved() {
    const { visible } = this.viewport;
    this.minimap.moved();
    this.commands.scaled(this.viewport.scale, this.minimap.useful);
    this.drawing.look(visible);
  }

  /**
   * Opens a box or closes it.
   * @param {BoxView} view
   */
  toggle(view) {
    const { body, name } = view.box;
    const open = new Set(this.open);
    if (open.has(body)) open.delete(body);
    else open.add(body);
    const opened = open.has(body);
    if (!this.arrange(open, view)) return;
    if (!opened && this.input.last?.level.gone) this.input.focus(view);
    if (opened) this.viewport.revealAcross(view.at, (height, width) => trunk(view.inside?.boxes ?? [], height, width));
    this.app.say(`${opened ? "opened" : "closed"} ${shortened(name, 80)}: ${plural(view.box.members.length, "node")}`);
  }

  openLevel() {
    const more = closedBodies(this.data, this.body, this.open);
    if (around(this, new Set([...this.open, ...more]))) this.app.say(`opened ${plural(more.length, "box", "boxes")}`);
  }

  closeAll() {
    // Other scenes keep theirs.
    const open = new Set(this.open);
    for (const view of this.drawing.boxes) if (view.inside) open.delete(view.box.body);
    around(this, open);
    this.app.say("all boxes closed");
  }

  /**
   * Draws with other boxes open, unless these are too many.
   * @param {Set<number>} open
   * @param {BoxView | null} held stays where it is on the page
   */
  arrange(open, held) {
    const count = boxesDrawn(this.data, this.body, open);
    if (count > MOST_BOXES && open.size > this.open.size) {
      this.tell(
        `That would draw ${plural(count, "box", "boxes")}, and at most ${grouped(MOST_BOXES)} are drawn at once: close others first, or open single ones.`,
      );
      return false;
    }
    this.tell("");
    this.open = open;
    const point = held ?? this.drawing.boxes.find((view) => view.level.parent === null) ?? null;
    this.viewport.hold(
      () => (point ? [point.at[0], point.at[1]] : [0, 0]),
      (seen) => {
        this.drawing.update(open, seen);
        this.fitted();
      },
    );
    this.narrowing.update();
    return true;
  }

  /** @param {string} notice */
  tell(notice) {
    put(this.notice, notice);
    this.notice.hidden = notice === "";
    if (notice) this.app.say(notice);
  }

  /** @param {number[]} locals */
  found(locals) {
    this.drawing.highlighting.find(locals);
    this.drawing.highlighting.setCurrent(null);
  }

  /**
   * Goes to a node: shows its graph, opens the boxes around it, brings it into view. Says where that is.
   * @param {number} local
   * @returns {string}
   */
  goTo(local) {
    const view = this.uncover(local);
    this.drawing.highlighting.setCurrent(view);
    if (!view) return `${shortened(this.names[local], 80)} is not drawn`;
    this.viewport.reveal(held(view));
    const { name, members } = view.box;
    return members.length > 1 ? `${shortened(this.names[local], 80)} in ${shortened(name, 80)}` : shortened(name, 80);
  }

  /**
   * The box of a node, after opening what is around it; null if it is in no drawing.
   * @param {number} local
   * @returns {BoxView | null}
   */
  uncover(local) {
    if (!this.bring(local)) return null;
    const way = this.holders.way(this.body, local) ?? [];
    if (way.some((body) => !this.open.has(body))) this.arrange(new Set([...this.open, ...way]), null);
    return this.drawing.shown[local] ?? null;
  }

  /**
   * Shows a graph that holds a node, the present one if it does.
   * @param {number} local
   */
  bring(local) {
    if (this.body >= 0 && this.holders.box(this.body, local) >= 0) return true;
    for (const [i, scene] of this.data.scenes.entries()) {
      const form = scene[this.forms[i]];
      if (i === this.scene || form < 0 || this.holders.box(form, local) < 0) continue;
      this.choose(i, this.forms[i]);
      return true;
    }
    return false;
  }

  /**
   * Goes to the far end of a cut edge; to the next one each time, if there are several.
   * @param {StubView} stub
   */
  follow(stub) {
    stub.visited = (stub.visited + 1) % stub.others.length;
    const name = stub.others[stub.visited];
    const which = stub.others.length > 1 ? `${stub.visited + 1} of ${stub.others.length}: ` : "";
    const beside = stub.level.boxes.find((view) => view.box.name === name);
    const local = beside ? -1 : this.localOf(name);
    const view = beside ?? (local >= 0 ? this.uncover(local) : null);
    if (!view) {
      this.tell(`${shortened(name, 80)} is not in this drawing.`);
      return;
    }
    this.app.say(which + shortened(name, 80));
    this.viewport.reveal(held(view));
    this.flash(view);
    // Its elements may still be in the making.
    void this.drawing.settled().then(() => this.input.focus(view));
  }

  /**
   * The node of a name in the graph that is shown; -1 if there is none.
   * @param {string} name
   */
  localOf(name) {
    return localNamed(this.data.bodies[this.body], this.names, name);
  }

  /** @param {BoxView} view */
  flash(view) {
    clearTimeout(this.flashes.get(view));
    view.flashing = true;
    this.drawing.highlighting.paint(view);
    const timer = setTimeout(() => {
      this.flashes.delete(view);
      view.flashing = false;
      this.drawing.highlighting.paint(view);
    }, FLASH);
    this.flashes.set(view, timer);
  }

  /** @param {Marks} marks */
  mark(marks) {
    this.drawing.highlighting.mark(marks);
    this.minimap.light(this.drawing.highlighting.lit.keys());
  }

  /** @param {number[]} items */
  reveal(items) {
    const locals = items.map((item) => item - this.start).filter((local) => local >= 0 && local < this.names.length);
    const here =
      locals.find((local) => this.drawing.shown[local] !== undefined) ?? locals.find((local) => this.bring(local));
    const view = here === undefined ? undefined : this.drawing.shown[here];
    if (!view) return false;
    if (this.viewport.sized) this.viewport.reveal(view.at);
    else this.waiting = items;
    return true;
  }

  /** @param {number[]} items */
  far(items) {
    return this.viewport.far(items.flatMap((item) => this.drawing.shown[item - this.start] ?? []).map(({ at }) => at));
  }

  paper() {
    return paperGraph(this.drawing);
  }

  resized() {
    this.viewport.resized();
    if (this.waiting.length === 0 || !this.viewport.sized) return;
    const { waiting } = this;
    this.waiting = [];
    this.reveal(waiting);
  }

  close() {
    for (const timer of this.flashes.values()) clearTimeout(timer);
    this.search.close();
    this.viewport.close();
    this.minimap.close();
    this.drawing.close();
  }
}
