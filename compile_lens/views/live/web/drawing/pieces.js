// The elements of single boxes, edges and stubs: made once, and drawn again where they have moved or grown.

import { pairLines, notFusedPairs } from "../data/not_fused.js";
import { AGAIN } from "../data/units.js";
import { s } from "../dom.js";
import { halfway } from "./curves.js";
import {
  barShapes,
  cardShapes,
  curve,
  keepHeading,
  kindClass,
  pixel,
  putLabel,
  signShapes,
  stubShapes,
  translate,
} from "./shapes.js";
import { hasSlot, isDashed, unitShapes, unitsOfBox } from "./unit_shapes.js";
import { BoxView, EdgeView, heldWords } from "./views.js";

/** @import { NotFusedPair } from "../data/not_fused.js" */
/** @import { Drawing } from "./drawing.js" */
/** @import { StubView } from "./views.js" */

/** @typedef {BoxView | EdgeView | StubView} Piece */

export class Pieces {
  /** @param {Drawing} drawing */
  constructor(drawing) {
    this.drawing = drawing;
    /** @type {WeakMap<Element, BoxView | StubView>} */
    this.byCard = new WeakMap();
    /** Pairs of groups that are not fused, by both of them. @type {Map<string, NotFusedPair>} */
    this.notFused = new Map(notFusedPairs(drawing.data).map((pair) => [`${pair.first} ${pair.second}`, pair]));
  }

  /**
   * Puts a piece on the page.
   * @param {Piece} view
   */
  place(view) {
    if (view.element) {
      view.element.style.display = "";
      this.draw(view);
    } else if (view instanceof BoxView) this.makeBox(view);
    else if (view instanceof EdgeView) this.makeEdge(view);
    else this.makeStub(view);
  }

  /**
   * A piece as it is now, if it is on the page: those that are off it are drawn when they come back.
   * @param {Piece} view
   */
  draw(view) {
    if (view instanceof BoxView) this.drawBox(view);
    else if (view instanceof EdgeView) this.drawEdge(view);
    else this.drawStub(view);
  }

  /** @param {BoxView} view */
  makeBox(view) {
    view.units = unitsOfBox(this.drawing.units, view.items(this.drawing.start));
    view.card = s("g", {
      class: "graph-stop",
      role: "button",
      tabindex: this.drawing.roving === view ? 0 : -1,
      "aria-pressed": "false",
    });
    view.element = s(
      "g",
      { class: `node ${kindClass(view.box.kind)}`, "data-item": this.drawing.start + view.box.members[0] },
      view.card,
    );
    this.byCard.set(view.card, view);
    if (view.box.body >= 0) {
      view.opener = s("g", { class: "graph-opener", role: "button", tabindex: this.drawing.roving === view ? 0 : -1 });
      view.element.append(view.opener);
      this.byCard.set(view.opener, view);
    }
    this.drawBox(view);
    this.drawing.highlighting.paint(view);
    view.level.cards.append(view.element);
  }

  /** @param {BoxView} view */
  drawBox(view) {
    const { box, element, card, opener, inside } = view;
    if (!element || !card || view.far) return;
    const [x, y, w, h] = view.at;
    const place = translate(x - view.level.x, y - view.level.y);
    if (view.place !== place) element.setAttribute("transform", place);
    view.place = place;
    const drawn = `${pixel(w)} ${pixel(h)}${inside ? " open" : ""}`;
    if (view.drawn === drawn) return;
    view.drawn = drawn;
    element.querySelector(":scope > .graph-frame")?.remove();
    const words = this.drawing.words.tip(box);
    const title = s("title", {}, isDashed(this.drawing.units, view.units) ? `${words}\n${AGAIN}` : words);
    if (inside) {
      element.prepend(s("rect", { class: "graph-frame", width: pixel(w), height: pixel(h), rx: 6 }));
      card.replaceChildren(title, ...barShapes(box, w, heldWords(box), view.same));
      element.append(inside.element);
    } else {
      const banded = view.units.size > 1 && hasSlot(box);
      card.replaceChildren(
        title,
        ...cardShapes(view.shown, w, h, this.drawing.words.savedIn(box), banded),
        ...unitShapes(this.drawing.units, view.units, box, w, h),
        ...this.drawing.words.signs(box, h),
      );
    }
    card.setAttribute("aria-label", this.drawing.words.label(box) + (inside ? ", open" : ""));
    if (opener) {
      const word = inside ? "close" : "open";
      opener.setAttribute("transform", inside ? "translate(15 13)" : "translate(2 2)");
      opener.setAttribute("aria-label", `${word} ${box.name.slice(0, 200)}`);
      opener.replaceChildren(s("title", {}, word), ...signShapes(inside !== null));
    }
    if (inside) keepHeading(view, this.drawing.seen.x, this.drawing.seen.x + this.drawing.seen.width);
    this.drawing.highlighting.paint(view);
  }

  /** @param {EdgeView} view */
  makeEdge(view) {
    const label = view.label && view.labelAt ? s("text", {}, view.label) : null;
    view.element = s("g", { class: "edge" }, s("path", {}), label, this.reason(view));
    this.drawEdge(view);
    this.drawing.highlighting.paintEdge(view);
    view.level.lines.append(view.element);
  }

  /**
   * The reason why the two groups at the ends of an edge are not one; null where that is no question.
   * @param {EdgeView} view
   */
  reason({ source, target }) {
    if (source.box.members.length > 1 || target.box.members.length > 1) return null;
    const ends = [source, target].map((box) => box.box.members[0]);
    const pair = this.notFused.get(ends.join(" "));
    if (!pair) return null;
    const tip = s("title", {}, [`${source.box.name} → ${target.box.name}`, ...pairLines(pair)].join("\n"));
    return s(
      "text",
      { class: "not-fused", "data-pair": ends.map((local) => this.drawing.start + local).join(" ") },
      `≠ ${pair.reason}`,
      tip,
    );
  }

  /** @param {EdgeView} view */
  drawEdge(view) {
    if (!view.element || view.far) return;
    const [path, ...texts] = view.element.children;
    path.setAttribute("d", curve(view.points));
    const [x, y] = view.labelAt ?? halfway(view.points);
    texts.forEach((text, line) => putLabel(text, [x, y + line * 13]));
  }

  /** @param {StubView} view */
  makeStub(view) {
    const words = this.drawing.words.stub(view.others, view.outgoing);
    const label = `${view.owner.box.name.slice(0, 80)}: cut edge ${words}; go there`;
    const tabindex = this.drawing.roving === view ? 0 : -1;
    view.card = s("g", { class: "graph-stop", role: "button", tabindex, "aria-label": label }, s("title", {}, words));
    view.card.append(...stubShapes(view.texts, view.at[2], view.at[3]));
    view.element = s("g", { class: "stub" }, s("path", {}), view.card);
    this.byCard.set(view.card, view);
    this.drawStub(view);
    this.drawing.highlighting.paintStub(view);
    view.level.lines.append(view.element);
  }

  /** @param {StubView} view */
  drawStub(view) {
    if (!view.element || view.far) return;
    const [path, card] = view.element.children;
    path.setAttribute("d", curve(view.points));
    card.setAttribute("transform", translate(view.at[0] - view.level.x, view.at[1] - view.level.y));
  }
}
