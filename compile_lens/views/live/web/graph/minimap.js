// A small picture of a large drawing, with the part that is in view, to be dragged.

import { h, s } from "../dom.js";

/** @import { Viewport } from "./viewport.js" */
/** @import { BoxView } from "../drawing/views.js" */

/** Pixels of the page. */
const LONGEST_SIDE = 150;
const SHORTEST_SIDE = 36;
/** Drawings that take up more of the view than this have a map. */
const LARGE = 1.5;
/** Milliseconds after the last move for which a map stays that nobody asked for. */
const STAYS = 1500;
/** A view that is smaller than this has no room for a map. */
const LEAST_VIEW = [300, 220];

/** @typedef {readonly [number, number, number, number]} MapRectangle */

export class Minimap {
  /** @param {Viewport} viewport */
  constructor(viewport) {
    this.viewport = viewport;
    /** True if it is there all the time; else while the view is moved by hand. */
    this.wanted = false;
    this.panning = false;
    this.timer = 0;
    /** True if the drawing is large, and the view too, enough for a map. */
    this.useful = false;
    this.boxes = s("path", { class: "map-boxes" });
    this.lit = s("path", { class: "map-lit" });
    this.window = s("rect", { class: "map-window" });
    this.svg = s("svg", { preserveAspectRatio: "none" }, this.boxes, this.lit, this.window);
    this.element = h("div", { class: "graph-map", "aria-hidden": "true", hidden: true }, this.svg);
    this.element.addEventListener("pointerdown", (event) => this.drag(event));
  }

  /**
   * Another drawing.
   * @param {MapRectangle[]} rectangles
   */
  draw(rectangles) {
    const { width, height } = this.viewport;
    this.boxes.setAttribute("d", rectanglePath(rectangles));
    this.svg.setAttribute("viewBox", `0 0 ${Math.max(1, width)} ${Math.max(1, height)}`);
    const scale = LONGEST_SIDE / Math.max(1, width, height);
    this.svg.setAttribute("width", String(Math.max(SHORTEST_SIDE, width * scale)));
    this.svg.setAttribute("height", String(Math.max(SHORTEST_SIDE, height * scale)));
  }

  /**
   * Shows what is lit in the drawing.
   * @param {Iterable<BoxView>} views
   */
  light(views) {
    const lit = [...views].filter((view) => view.bits !== 0 && !view.inside);
    this.lit.setAttribute("d", rectanglePath(lit.map((view) => view.at)));
  }

  /** The viewport shows another part, or has another size. */
  moved() {
    const { viewport } = this;
    const { clientWidth, clientHeight } = viewport.element;
    const large =
      viewport.width * viewport.scale > LARGE * clientWidth || viewport.height * viewport.scale > LARGE * clientHeight;
    this.useful = large && clientWidth >= LEAST_VIEW[0] && clientHeight >= LEAST_VIEW[1];
    this.element.hidden = !(this.wanted || this.panning) || !this.useful;
    if (this.element.hidden) return;
    const { x, y, width, height } = viewport.visible;
    const [left, top] = [Math.max(0, x), Math.max(0, y)];
    this.window.setAttribute("x", String(left));
    this.window.setAttribute("y", String(top));
    this.window.setAttribute("width", String(Math.max(0, Math.min(viewport.width, x + width) - left)));
    this.window.setAttribute("height", String(Math.max(0, Math.min(viewport.height, y + height) - top)));
  }

  /** Someone moves the view. */
  pan() {
    clearTimeout(this.timer);
    this.panning = true;
    this.timer = setTimeout(() => {
      this.panning = this.element.matches(":hover, .held");
      if (this.panning) this.pan();
      else this.moved();
    }, STAYS);
    this.moved();
  }

  close() {
    clearTimeout(this.timer);
  }

  /** @param {boolean} wanted */
  want(wanted) {
    this.wanted = wanted;
    this.panning = false;
    this.moved();
  }

  /** @param {PointerEvent} event */
  drag(event) {
    if (event.button !== 0) return;
    event.preventDefault();
    event.stopPropagation();
    const { viewport, element } = this;
    const stop = new AbortController();
    const move = (/** @type {PointerEvent} */ now) => {
      const frame = this.svg.getBoundingClientRect();
      const { width, height, x, y } = viewport.visible;
      const [px, py] = [
        ((now.clientX - frame.left) / frame.width) * viewport.width,
        ((now.clientY - frame.top) / frame.height) * viewport.height,
      ];
      const { scrollLeft, scrollTop } = viewport.element;
      viewport.moveTo(
        scrollLeft + (px - width / 2 - x) * viewport.scale,
        scrollTop + (py - height / 2 - y) * viewport.scale,
      );
    };
    element.setPointerCapture(event.pointerId);
    move(event);
    element.addEventListener("pointermove", move, { signal: stop.signal });
    for (const name of /** @type {const} */ (["pointerup", "pointercancel", "lostpointercapture"])) {
      element.addEventListener(name, () => stop.abort(), { signal: stop.signal });
    }
  }
}

/** @param {MapRectangle[]} rectangles */
function rectanglePath(rectangles) {
  return rectangles
    .map(([x, y, w, h]) => `M${Math.round(x)} ${Math.round(y)}h${Math.round(w)}v${Math.round(h)}h${-Math.round(w)}z`)
    .join("");
}
