// A graph as text, each line linked to its node.

import { h } from "../dom.js";
import { Finder, copyButton } from "../listing/finder.js";
import { Listing } from "../listing/listing.js";
import { paperRows } from "../listing/print_rows.js";

/** @import { App, Marks } from "../data/app.d.ts" */
/** @import { GraphData } from "../types.d.ts" */

export class TextPane {
  /**
   * @param {App} app
   * @param {number} stage
   * @param {GraphData} data
   */
  constructor(app, stage, data) {
    const { start } = app.model.index.stages[stage];
    /** @type {Map<number, number[]>} */
    const items = new Map();
    for (const [line, local] of data.lineOf) items.set(line, [...(items.get(line) ?? []), start + local]);
    this.listing = new Listing(app, {
      text: data.code,
      label: `${app.model.stageTitle(stage)} as text`,
      items,
      coloured: true,
    });
    this.finder = new Finder(app, () => [this.listing]);
    this.element = h("div", { class: "text-pane" }, this.listing.element);
    /** @type {HTMLElement | null} */
    this.tools = h(
      "div",
      { class: "listing-tools" },
      this.finder.element,
      copyButton(app, () => data.code.text),
    );
  }

  /** @param {Marks} marks */
  mark(marks) {
    this.listing.mark(marks);
  }

  /** @param {number[]} items */
  reveal(items) {
    return this.listing.reveal(items);
  }

  paper() {
    return paperRows(this.listing);
  }

  resized() {
    this.listing.resized();
  }

  close() {
    this.finder.close();
    this.listing.close();
  }
}
