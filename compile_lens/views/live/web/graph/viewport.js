// A window on a drawing: scrolling, zoom around a point, and panning with the pointer.

import { h } from "../dom.js";

const SMALLEST = 0.05;
const LARGEST = 4;
/** A small drawing opens larger than it is, at this scale at most; a large one as it is, so that it can be read. */
const LARGEST_START = 1.35;
/** Blank ground around the drawing, in its own pixels. */
const MARGIN = 18;
const STEP = 1.25;
/** Pointers that move less than this click, in pixels. */
const STILL = 4;

/** @import { View } from "../drawing/drawing.js" */

/** @typedef {{ scale: number, left: number, top: number }} ViewState */

/** @typedef {(height: number, width: number) => number} Entry */

export class Viewport {
  /**
   * @param {SVGSVGElement} svg holds one group, which is what grows and shrinks
   * @param {() => void} changed called after each move and zoom
   * @param {() => void} panned called when someone scrolls or drags
   */
  constructor(svg, changed, panned) {
    this.panned = panned;
    this.svg = svg;
    this.changed = changed;
    this.width = 0;
    this.height = 0;
    this.scale = 1;
    this.left = 0;
    this.top = 0;
    /** True if the scale was chosen for a size that is known. */
    this.started = false;
    /** True if anyone has scrolled or zoomed; until then the scale follows the size of the element. */
    this.touched = false;
    /** The middle of what should be seen first, from left to right, in a window of a height and width. @type {Entry} */
    this.entry = () => 0;
    /** Distance of two fingers at the last move. */
    this.fingers = 0;
    this.frame = 0;
    /** True if the drawing is just changing. */
    this.holding = false;
    /** Zoom that waits for the next frame. @type {{ factor: number, x: number, y: number } | null} */
    this.waiting = null;
    /** As large as the drawing and its blank ground. */
    this.room = h("div", { class: "graph-room" }, svg);
    this.element = h("div", { class: "graph-view", tabindex: -1 }, this.room);
    const on = this.element.addEventListener.bind(this.element);
    on("scroll", () => this.scrolled(), { passive: true });
    on("wheel", (event) => this.wheel(event), { passive: false });
    on("touchstart", (event) => this.touch(event), { passive: true });
    on("touchmove", (event) => this.touch(event), { passive: false });
    on("pointerdown", (event) => this.pan(event));
    on("keydown", (event) => this.key(event));
  }

  /** True if there is a place on the page to show anything in. */
  get sized() {
    return this.element.clientWidth > 0 && this.element.clientHeight > 0;
  }

  /**
   * The size of the drawing. What is in view stays.
   * @param {number} width
   * @param {number} height
   */
  setSize(width, height) {
    this.width = width;
    this.height = height;
    this.apply();
  }

  /**
   * Chooses scale and place anew: as large as it is, or larger if all of it is in view then, and its top.
   * @param {Entry} entry the middle of what should be seen, if not all is in view
   * @param {ViewState | undefined} state to go back to instead
   */
  start(entry, state) {
    this.entry = entry;
    this.started = this.sized;
    this.touched = state !== undefined;
    if (state) {
      this.scale = state.scale;
      this.apply();
      this.moveTo(state.left, state.top);
      return;
    }
    const { clientWidth, clientHeight } = this.element;
    const whole = Math.min(clientWidth / (this.width + 2 * MARGIN), clientHeight / (this.height + 2 * MARGIN));
    this.scale = Math.max(1, Math.min(LARGEST_START, whole));
    // Who looks at the page before it is moved lays it out twice; where there is no room nothing moves.
    this.holding = this.sized;
    this.apply();
    this.holding = false;
    const middle = entry(clientHeight / this.scale, clientWidth / this.scale);
    this.moveTo((middle + MARGIN) * this.scale - clientWidth / 2, 0);
  }

  /** @returns {ViewState} */
  get state() {
    return { scale: this.scale, left: this.left, top: this.top };
  }

  /** The element has another size, or is on the page again. */
  resized() {
    if (!this.sized) return;
    if (!this.started || !this.touched) this.start(this.entry, undefined);
    // What is taken from the page forgets where it was scrolled to.
    else this.moveTo(this.left, this.top);
    this.changed();
  }

  /**
   * The drawing grows and shrinks within an `svg` that keeps its size: with each size of that, and be it that of an
   * `svg` around, a browser lays out all text in it anew.
   */
  apply() {
    const [w, h] = [this.width + 2 * MARGIN, this.height + 2 * MARGIN];
    this.room.style.width = `${round(w * this.scale)}px`;
    this.room.style.height = `${round(h * this.scale)}px`;
    const corner = round(MARGIN * this.scale);
    const wanted = `translate(${corner} ${corner}) scale(${this.scale})`;
    const ground = this.svg.firstElementChild;
    if (ground?.getAttribute("transform") !== wanted) ground?.setAttribute("transform", wanted);
    if (!this.holding) this.changed();
  }

  /**
   * @param {number} left
   * @param {number} top
   */
  moveTo(left, top) {
    this.element.scrollLeft = left;
    this.element.scrollTop = top;
    if (!this.sized) return;
    this.left = this.element.scrollLeft;
    this.top = this.element.scrollTop;
    this.changed();
  }

  scrolled() {
    if (!this.sized) return;
    // Where the scripts move to is known before the event comes.
    if (this.left !== this.element.scrollLeft || this.top !== this.element.scrollTop) {
      this.touched = true;
      this.panned();
    }
    this.left = this.element.scrollLeft;
    this.top = this.element.scrollTop;
    this.changed();
  }

  /** The part of the drawing that is in view. */
  get visible() {
    const ground = this.ground();
    const { clientWidth, clientHeight } = this.element;
    return {
      x: -ground.x / this.scale,
      y: -ground.y / this.scale,
      width: clientWidth / this.scale,
      height: clientHeight / this.scale,
    };
  }

  /**
   * The distance of the nearest of some parts of the drawing from being in view whole, in pixels of the page: 0 if all of it
   * is, infinite for none. What is in view is measured once: a first look asks of hundreds.
   * @param {(readonly [number, number, number, number])[]} rectangles
   */
  far(rectangles) {
    const { visible } = this;
    const far = rectangles.map(([x, y, w, h]) => {
      const across = Math.max(0, visible.x - x, x + w - visible.x - visible.width);
      return across + Math.max(0, visible.y - y, y + h - visible.y - visible.height);
    });
    return Math.min(Infinity, ...far) * this.scale;
  }

  /** The place of the drawing's corner, from the corner of the element, in pixels of the page. */
  ground() {
    // A drawing that is narrower than the element stands in its middle.
    const spare = Math.max(0, this.element.clientWidth - (this.width + 2 * MARGIN) * this.scale) / 2;
    return {
      x: spare + MARGIN * this.scale - this.element.scrollLeft,
      y: MARGIN * this.scale - this.element.scrollTop,
    };
  }

  /**
   * Zooms; the point of the drawing at `x`, `y` stays where it is.
   * @param {number} scale
   * @param {number} [x] from the corner of the element, in pixels of the page; its middle without
   * @param {number} [y]
   */
  zoomTo(scale, x = this.element.clientWidth / 2, y = this.element.clientHeight / 2) {
    this.touched = true;
    const before = this.ground();
    const [px, py] = [(x - before.x) / this.scale, (y - before.y) / this.scale];
    this.scale = Math.max(SMALLEST, Math.min(LARGEST, scale));
    this.apply();
    const after = this.ground();
    this.moveTo(
      this.element.scrollLeft + after.x + px * this.scale - x,
      this.element.scrollTop + after.y + py * this.scale - y,
    );
  }

  /** @param {number} direction 1 or -1 */
  zoomBy(direction) {
    this.zoomTo(this.scale * STEP ** direction);
  }

  /** The whole drawing in view, never larger than it is. */
  fit() {
    const { clientWidth, clientHeight } = this.element;
    this.zoomTo(Math.min(1, clientWidth / (this.width + 2 * MARGIN), clientHeight / (this.height + 2 * MARGIN)));
  }

  /**
   * Brings a part of the drawing into view: not at all if it is there, in the middle if it was far.
   * @param {readonly [number, number, number, number]} rectangle
   */
  reveal([x, y, w, h]) {
    const { clientWidth, clientHeight, scrollLeft, scrollTop } = this.element;
    const ground = this.ground();
    const left = scrolledInto(ground.x + x * this.scale, w * this.scale, clientWidth);
    const top = scrolledInto(ground.y + y * this.scale, h * this.scale, clientHeight);
    if (left === 0 && top === 0) return;
    this.touched = true;
    this.moveTo(scrollLeft + left, scrollTop + top);
  }

  /**
   * Scrolls sideways until a part of the drawing is in view from left to right; what has no room there stands with the
   * middle of what should be seen first in the middle.
   * @param {readonly [number, number, number, number]} rectangle
   * @param {Entry} entry
   */
  revealAcross([x, , w], entry) {
    const { clientWidth, clientHeight, scrollLeft, scrollTop } = this.element;
    const ground = this.ground().x;
    const fits = w * this.scale <= clientWidth - 2 * MARGIN;
    const middle = ground + entry(clientHeight / this.scale, clientWidth / this.scale) * this.scale;
    const left = fits ? scrolledInto(ground + x * this.scale, w * this.scale, clientWidth) : middle - clientWidth / 2;
    if (left !== 0) this.moveTo(scrollLeft + left, scrollTop);
  }

  /**
   * Keeps a point of the drawing at its place of the page while the drawing changes around it.
   * @param {() => [number, number]} point
   * @param {(seen: (width: number, height: number) => View) => void} change is told how to know what will be in view of
   *   a drawing of another size, before that is on the page
   */
  hold(point, change) {
    this.touched = true;
    const ground = this.ground();
    const { clientWidth, clientHeight } = this.element;
    const [x, y] = point();
    const [px, py] = [ground.x + x * this.scale, ground.y + y * this.scale];
    /** @param {number} drawing @param {number} room @param {number} spare @param {number} at @param {number} held */
    const along = (drawing, room, spare, at, held) => {
      const length = (drawing + 2 * MARGIN) * this.scale;
      const corner = Math.max(0, spare - length) / 2 + MARGIN * this.scale;
      return (Math.max(0, Math.min(length - room, corner + at * this.scale - held)) - corner) / this.scale;
    };
    // Who looks at the page in between lays it out once more.
    this.holding = true;
    change((width, height) => {
      const [nx, ny] = point();
      return {
        x: along(width, clientWidth, clientWidth, nx, px),
        y: along(height, clientHeight, 0, ny, py),
        width: clientWidth / this.scale,
        height: clientHeight / this.scale,
      };
    });
    this.holding = false;
    const after = this.ground();
    const [nx, ny] = point();
    this.moveTo(
      this.element.scrollLeft + after.x + nx * this.scale - px,
      this.element.scrollTop + after.y + ny * this.scale - py,
    );
  }

  /** @param {WheelEvent} event */
  wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
    const factor = Math.exp(-Math.max(-60, Math.min(60, event.deltaY * lines)) * 0.008);
    this.zoomSoon(factor, event.clientX, event.clientY);
  }

  /** @param {TouchEvent} event */
  touch(event) {
    if (event.touches.length !== 2) return;
    const [one, other] = event.touches;
    const distance = Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);
    if (event.type === "touchmove" && this.fingers > 0) {
      event.preventDefault();
      this.zoomSoon(distance / this.fingers, (one.clientX + other.clientX) / 2, (one.clientY + other.clientY) / 2);
    }
    this.fingers = distance;
  }

  /**
   * Zooms with the next frame: wheels and fingers report more often than the page can draw.
   * @param {number} factor
   * @param {number} clientX
   * @param {number} clientY
   */
  zoomSoon(factor, clientX, clientY) {
    this.waiting = { factor: (this.waiting?.factor ?? 1) * factor, x: clientX, y: clientY };
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      const waiting = this.waiting;
      this.waiting = null;
      if (!waiting) return;
      const corner = this.element.getBoundingClientRect();
      this.zoomTo(this.scale * waiting.factor, waiting.x - corner.left, waiting.y - corner.top);
    });
  }

  /**
   * Drags the ground. Boxes are for clicks, and fingers scroll anyway.
   * @param {PointerEvent} event
   */
  pan(event) {
    const target = /** @type {Element} */ (event.target);
    if (event.button !== 0 || event.pointerType === "touch" || target.closest(".graph-stop, .graph-opener")) return;
    const { element } = this;
    // The scroll bars are the element's own.
    if (target === element && (event.offsetX >= element.clientWidth || event.offsetY >= element.clientHeight)) return;
    const start = { x: event.clientX, y: event.clientY, left: element.scrollLeft, top: element.scrollTop };
    let dragging = false;
    const stop = new AbortController();
    const move = (/** @type {PointerEvent} */ now) => {
      const [dx, dy] = [now.clientX - start.x, now.clientY - start.y];
      if (!dragging && Math.hypot(dx, dy) < STILL) return;
      if (!dragging) {
        dragging = true;
        this.touched = true;
        element.setPointerCapture(event.pointerId);
        element.classList.add("dragging");
      }
      this.moveTo(start.left - dx, start.top - dy);
      this.panned();
    };
    const end = () => {
      element.classList.remove("dragging");
      stop.abort();
    };
    element.addEventListener("pointermove", move, { signal: stop.signal });
    for (const name of /** @type {const} */ (["pointerup", "pointercancel", "lostpointercapture"])) {
      element.addEventListener(name, end, { signal: stop.signal });
    }
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "+" || event.key === "=") this.zoomBy(1);
    else if (event.key === "-" || event.key === "_") this.zoomBy(-1);
    else if (event.key === "0") this.fit();
    else return;
    event.preventDefault();
  }

  close() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
  }
}

/**
 * The distance to scroll so that a stretch is in view.
 * @param {number} from
 * @param {number} length
 * @param {number} room
 */
function scrolledInto(from, length, room) {
  const edge = Math.min(24, room / 8);
  if (from >= edge && from + length <= room - edge) return 0;
  if (length > room - 2 * edge) return from - edge;
  return from + length / 2 - room / 2;
}

/** @param {number} value */
function round(value) {
  return Math.round(value * 100) / 100;
}
