// Pointer and keys on the drawing of a graph: hover and focus preview, click and Enter pin, arrows walk.

import { pairItems, pairName } from "../data/not_fused.js";
import { BoxView, StubView } from "../drawing/views.js";
import { held, nextStop, topmost } from "../drawing/walk.js";

/** @import { GraphPane } from "./pane.js" */
/** @import { Direction, Stop } from "../drawing/walk.js" */

/** @type {Record<string, Direction>} */
const ARROWS = { ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right" };

export class GraphInput {
  /** @param {GraphPane} pane */
  constructor(pane) {
    this.pane = pane;
    /** The box that had the focus last. @type {BoxView | null} */
    this.last = null;
    // Not on the drawing itself: Chromium makes SVG that listens for focus a tab stop.
    const { element } = pane.viewport;
    element.addEventListener("pointerover", (event) => this.over(event));
    element.addEventListener("pointerleave", () => this.preview(null));
    element.addEventListener("focusin", (event) => this.focused(event));
    element.addEventListener("focusout", (event) => pane.app.selection.left(event, element));
    element.addEventListener("click", (event) => this.click(event));
    element.addEventListener("dblclick", (event) => this.twice(event));
    element.addEventListener("keydown", (event) => this.key(event));
  }

  /**
   * The part that an event happened on, and whether that was the sign that opens a box.
   * @param {Event} event
   * @returns {{ stop: Stop | null, sign: boolean }}
   */
  hit(event) {
    const card = /** @type {Element} */ (event.target).closest(".graph-stop, .graph-opener");
    const stop = card ? (this.pane.drawing.byCard.get(card) ?? null) : null;
    return { stop, sign: card !== null && card.classList.contains("graph-opener") };
  }

  /** @param {Stop | null} stop */
  preview(stop) {
    const { app, start, viewport } = this.pane;
    if (stop instanceof BoxView) app.selection.preview(stop.items(start), stop.box.name, viewport.element);
    else app.selection.preview([]);
  }

  /** @param {PointerEvent} event */
  over(event) {
    if (event.pointerType === "touch") return;
    const pair = pairItems(event.target);
    if (pair.length) {
      const { app, viewport } = this.pane;
      app.selection.preview(pair, pairName(app.model, pair), viewport.element);
      return;
    }
    this.preview(this.hit(event).stop);
  }

  /** @param {FocusEvent} event */
  focused(event) {
    const { stop } = this.hit(event);
    if (!stop) return;
    this.pane.drawing.rove(stop);
    if (stop instanceof BoxView) this.last = stop;
    this.preview(stop);
  }

  /** @param {MouseEvent} event */
  click(event) {
    const { stop, sign } = this.hit(event);
    const pair = pairItems(event.target);
    if (stop) this.act(stop, sign);
    else if (pair.length) this.pane.app.selection.toggle(pair, pairName(this.pane.app.model, pair));
  }

  /**
   * @param {Stop} stop
   * @param {boolean} sign
   */
  act(stop, sign) {
    const { pane } = this;
    if (stop instanceof StubView) pane.follow(stop);
    else if (sign) pane.toggle(stop);
    else pane.app.selection.toggle(stop.items(pane.start), stop.box.name);
  }

  /** @param {MouseEvent} event */
  twice(event) {
    const { stop, sign } = this.hit(event);
    // The two clicks pinned and took the pin out again.
    if (stop instanceof BoxView && !sign && stop.box.body >= 0) this.pane.toggle(stop);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { stop, sign } = this.hit(event);
    const { pane } = this;
    const { key } = event;
    if (key === "Escape") {
      if (!pane.narrowing.around) return;
      pane.narrowing.end();
    } else if (!stop) return;
    else if (key === "Enter" || key === " ") this.act(stop, sign);
    else if (key in ARROWS) this.walk(stop, ARROWS[key]);
    else if (key === "Home") this.focus(topmost(pane.drawing.boxes));
    else if (key === "End") this.focus(pane.drawing.boxes.at(-1) ?? null);
    else if (key === "n" && stop instanceof BoxView) pane.narrowing.start(stop);
    else if (key === "o" && stop instanceof BoxView && stop.box.body >= 0) pane.toggle(stop);
    else return;
    event.preventDefault();
  }

  /**
   * @param {Stop} from
   * @param {Direction} direction
   */
  walk(from, direction) {
    const { boxes, stubs } = this.pane.drawing;
    this.focus(nextStop(from, direction, [...boxes, ...stubs]));
  }

  /**
   * Moves the focus and brings what has it into view.
   * @param {Stop | null} stop
   */
  focus(stop) {
    if (!stop) return;
    this.pane.viewport.reveal(held(stop));
    this.pane.drawing.need(stop);
    // The browser would put it at the edge of the view.
    stop.card?.focus({ preventScroll: true });
  }
}
