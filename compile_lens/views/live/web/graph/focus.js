// The surroundings of a node, while the rest of the drawing is dimmed, and the line that describes them.

import { button, h, put } from "../dom.js";
import { MOST_STEPS, Neighbourhood, neighbourhoodWords } from "./neighbourhood.js";

/** @import { GraphPane } from "./pane.js" */
/** @import { BoxView } from "../drawing/views.js" */

export class Narrowing {
  /** @param {GraphPane} pane */
  constructor(pane) {
    this.pane = pane;
    /** The nodes for which everything else is dimmed. @type {{ locals: number[], name: string } | null} */
    this.around = null;
    this.steps = 1;
    /** By scene. @type {Map<number, Neighbourhood>} */
    this.known = new Map();
    this.words = h("span", { class: "graph-narrow-words" });
    this.buttons = Array.from({ length: MOST_STEPS }, (_, i) =>
      button(String(i + 1), () => this.choose(i + 1), {
        label: `${i + 1} ${i === 0 ? "step" : "steps"}`,
        pressed: false,
      }),
    );
    this.element = h(
      "div",
      { class: "graph-narrow", role: "group", "aria-label": "neighbours", hidden: true },
      h("span", { class: "graph-group" }, "steps ", this.buttons),
      this.words,
      button("show all", () => this.end()),
    );
  }

  /**
   * Dims what is not around a box; without one, around the box that had the focus or the newest pin.
   * @param {BoxView | null} view
   */
  start(view) {
    const { app, start, drawing, input } = this.pane;
    const last = view ?? (input.last?.level.gone ? null : input.last);
    const own = (/** @type {number[]} */ items) =>
      items.map((item) => item - start).filter((local) => drawing.shown[local]);
    const pin = last ? undefined : [...app.selection.pins].reverse().find(({ items }) => own(items).length > 0);
    if (!last && !pin) {
      this.pane.tell("Choose a node first: click it, or move to it with the arrow keys.");
      return;
    }
    this.pane.tell("");
    this.around = last
      ? { locals: last.box.members, name: last.box.name }
      : { locals: own(pin?.items ?? []), name: pin?.name ?? "" };
    this.update();
    app.say(this.words.textContent ?? "");
  }

  /** @param {number} steps */
  choose(steps) {
    this.steps = steps;
    this.update();
    this.pane.app.say(this.words.textContent ?? "");
  }

  /** Nothing is dimmed in another scene. */
  forget() {
    this.around = null;
    this.update();
  }

  /** Dims what is to be dimmed in the drawing as it is now. */
  update() {
    const { around, steps, pane } = this;
    const { drawing } = pane;
    drawing.element.classList.toggle("narrowed", around !== null);
    this.element.hidden = around === null;
    if (!around) {
      drawing.highlighting.dim(null);
      return;
    }
    let known = this.known.get(pane.scene);
    if (!known) {
      known = new Neighbourhood(pane.data, pane.data.scenes[pane.scene]);
      this.known.set(pane.scene, known);
    }
    const near = known.around(around.locals, steps);
    drawing.highlighting.dim(near.nodes);
    const mixed = drawing.boxes.filter(
      (view) => !view.inside && view.near && view.box.members.some((local) => !near.nodes.has(local)),
    );
    put(this.words, neighbourhoodWords(around.name, steps, near, pane.count, mixed.length));
    this.buttons.forEach((one, i) => one.setAttribute("aria-pressed", String(i + 1 === steps)));
  }

  /** Shows everything again. */
  end() {
    // A button that disappears would take the focus with it.
    const root = /** @type {ShadowRoot | Document} */ (this.element.getRootNode());
    const within = this.element.contains(root.activeElement);
    this.forget();
    if (within) this.pane.input.focus(this.pane.drawing.roving);
    this.pane.app.say("all nodes shown");
  }
}
