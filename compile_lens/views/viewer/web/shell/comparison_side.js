// One target of a comparison: its capture, what is lit in it, and what of it is like the others.

import { Chain } from "../data/chain.js";
import { COLOURS, Selection } from "../data/selection.js";
import { h, put } from "../dom.js";

/** @import { CodePane } from "../code/pane.js" */
/** @import { App } from "../data/app.d.ts" */
/** @import { Model } from "../data/model.js" */

export class Side {
  /**
   * @param {Model} model
   * @param {HTMLElement} voice
   */
  constructor(model, voice) {
    this.model = model;
    const chain = new Chain(model.index);
    this.selection = new Selection(chain, (items) => model.units.ofAll(items, this.app.compilation));
    /** @type {App} */
    this.app = {
      model,
      chain,
      selection: this.selection,
      compilation: 0,
      choose: () => undefined,
      say: (sentence) => put(voice, sentence),
      show: () => undefined,
    };
    /** @type {CodePane | null} */
    this.pane = null;
    this.body = h("div", { class: "frame-body" });
    this.tools = h("div", { class: "frame-tools" });
  }

  /**
   * What a unit is called in every capture of the same function.
   * @param {number} unit
   */
  nameOf(unit) {
    const { line, column, end } = this.model.units.all[unit];
    return `${this.model.name(line)} ${column} ${end}`;
  }

  /**
   * The same of the other side: what came from the same lines or calls.
   * @param {Side} other
   * @param {number[]} items
   */
  like(other, items) {
    const units = this.model.units.ofAll(items, this.app.compilation);
    const names = new Set(units.map((unit) => this.nameOf(unit)));
    return other.model.units.all.flatMap((unit, number) =>
      unit.compilation === other.app.compilation && names.has(other.nameOf(number)) ? unit.items : [],
    );
  }

  /** @param {Map<string, number>} colours by name of a unit; what is new gets the next one */
  recolour(colours) {
    this.model.units.all.forEach((unit, number) => {
      const name = `${unit.compilation} ${this.nameOf(number)}`;
      const colour = colours.get(name) ?? (colours.size === 0 ? unit.colour : colours.size % COLOURS);
      colours.set(name, colour);
      unit.colour = colour;
    });
  }
}
