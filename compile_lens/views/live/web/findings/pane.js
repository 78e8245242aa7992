// A finding: sections one below the other. A row or a change that the record links to others lights up and pins.

import { litLineClass } from "../listing/listing_block.js";
import { h, shortened } from "../dom.js";
import { findingSection } from "./sections.js";

/** @import { Listing } from "../listing/listing.js" */
/** @import { App, Marks, Pane } from "../data/app.d.ts" */
/** @import { FindingData, FindingHead } from "../types.d.ts" */

/**
 * Something that stands for items: the element that lights up, and the button in it that pins.
 * @typedef {{ element: HTMLElement, button: HTMLElement, items: number[], own: string }} Linked
 */

/** @implements {Pane} */
export class FindingPane {
  /**
   * @param {App} app
   * @param {FindingHead} head
   * @param {FindingData} data
   */
  constructor(app, head, data) {
    this.app = app;
    /** @type {WeakMap<Element, Linked>} */
    this.links = new WeakMap();
    /** The parts that light up for each item. @type {Map<number, Linked[]>} */
    this.byItem = new Map();
    /** @type {Map<Linked, number>} */
    this.lit = new Map();
    /** @type {Marks} */
    this.marks = app.selection.marks;
    /** @type {Set<Listing>} */
    this.listings = new Set();
    /** @type {HTMLElement | null} */
    this.tools = null;
    this.element = h("div", { class: "finding", role: "group", "aria-label": head.title });
    this.element.append(
      h("p", { class: "finding-intro" }, head.intro),
      ...data.sections.map((section) => findingSection(this, section)),
      data.where ? h("p", { class: "finding-where" }, "All of it: ", h("code", {}, data.where)) : "",
    );
    this.listen();
  }

  listen() {
    const { selection } = this.app;
    /** @param {Event} event */
    const over = (event) => {
      const linked = this.linkedAt(event.target);
      selection.preview(linked ? linked.items : [], linked ? this.nameOf(linked.items) : "", this.element);
    };
    this.element.addEventListener("pointerover", over);
    this.element.addEventListener("focusin", over);
    this.element.addEventListener("pointerleave", () => selection.preview([]));
    this.element.addEventListener("focusout", (event) => selection.left(event, this.element));
    // Enter and Space on the button arrive as clicks. Who selects words does not click.
    this.element.addEventListener("click", (event) => {
      const linked = this.linkedAt(event.target);
      const marked = this.element.getRootNode() instanceof ShadowRoot ? String(getSelection() ?? "") : "";
      if (linked && marked === "") selection.toggle(linked.items, this.nameOf(linked.items));
    });
  }

  /** @param {EventTarget | null} target */
  linkedAt(target) {
    const element = target instanceof Element ? target.closest("[data-linked]") : null;
    return element ? this.links.get(element) : undefined;
  }

  /** @param {number[]} items */
  nameOf(items) {
    const names = items.slice(0, 2).map((item) => shortened(this.app.model.name(item), 40));
    return items.length > 2 ? `${names[0]} and ${items.length - 1} more` : names.join(" and ");
  }

  /**
   * Links an element to items.
   * @param {HTMLElement} element
   * @param {HTMLElement} button
   * @param {number[]} items at least one
   */
  link(element, button, items) {
    element.setAttribute("data-linked", "");
    button.setAttribute("aria-pressed", String(this.app.selection.isPinned(items)));
    const linked = { element, button, items, own: element.className };
    this.links.set(element, linked);
    for (const item of items) {
      const known = this.byItem.get(item);
      if (known) known.push(linked);
      else this.byItem.set(item, [linked]);
    }
    const bits = items.reduce((all, item) => all | (this.marks.get(item) ?? 0), 0);
    if (bits) this.light(linked, bits);
  }

  /**
   * Forgets what an element was linked to; it shows something else.
   * @param {HTMLElement} element
   */
  unlink(element) {
    const linked = this.links.get(element);
    if (!linked) return;
    this.light(linked, 0);
    this.links.delete(element);
    element.removeAttribute("data-linked");
    for (const item of linked.items)
      this.byItem.set(
        item,
        (this.byItem.get(item) ?? []).filter((other) => other !== linked),
      );
  }

  /** @param {Marks} marks */
  mark(marks) {
    this.marks = marks;
    /** @type {Map<Linked, number>} */
    const now = new Map();
    /** @param {number} item @param {number} bits */
    const add = (item, bits) => {
      for (const linked of this.byItem.get(item) ?? []) now.set(linked, (now.get(linked) ?? 0) | bits);
    };
    if (marks.size < this.byItem.size) for (const [item, bits] of marks) add(item, bits);
    else for (const item of this.byItem.keys()) if (marks.has(item)) add(item, marks.get(item) ?? 0);
    for (const linked of [...this.lit.keys()]) if (!now.has(linked)) this.light(linked, 0);
    for (const [linked, bits] of now) if (this.lit.get(linked) !== bits) this.light(linked, bits);
  }

  /** @param {Linked} linked @param {number} bits */
  light(linked, bits) {
    if (bits) this.lit.set(linked, bits);
    else this.lit.delete(linked);
    linked.element.className = linked.own + litLineClass(bits);
    linked.button.setAttribute("aria-pressed", String(this.app.selection.isPinned(linked.items)));
  }

  /** Rows light up where they are: a list that jumps with each click elsewhere cannot be read. */
  reveal() {
    return false;
  }

  resized() {
    for (const listing of this.listings) listing.resized();
  }

  close() {
    for (const listing of this.listings) listing.close();
  }
}
