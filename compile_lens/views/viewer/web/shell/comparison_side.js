// One column of a comparison: its capture, what is lit in it, and what of it is like the others.

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
    /** What units are called: the same in each capture of one program. */
    this.names = model.units.all.map(({ line, column, end }) => `${model.name(line)} ${column} ${end}`);
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
      beside: () => undefined,
    };
    /** @type {CodePane | null} */
    this.pane = null;
    this.body = h("div", { class: "frame-body" });
    this.tools = h("div", { class: "frame-tools" });
  }

  /**
   * Takes over the names of another capture, whose lines may stand elsewhere, for what is the same in both.
   * @param {Side} first
   * @param {[number, number][]} same items of both
   */
  rename(first, same) {
    first.names = first.names.map((_, unit) => `the first's ${unit}`);
    this.names = this.names.map((_, unit) => `its own ${unit}`);
    for (const [one, two] of same) {
      const [name] = first.model.units.of(one);
      const [own] = this.model.units.of(two);
      if (name !== undefined && own !== undefined) this.names[own] = first.names[name];
    }
  }

  /**
   * The same of the other side: what came from the same lines or calls.
   * @param {Side} other
   * @param {number[]} items
   */
  like(other, items) {
    const units = this.model.units.ofAll(items, this.app.compilation);
    const names = new Set(units.map((unit) => this.names[unit]));
    return other.model.units.all.flatMap((unit, number) =>
      unit.compilation === other.app.compilation && names.has(other.names[number]) ? unit.items : [],
    );
  }

  /**
   * What has one colour: units of one name in compilations of one number.
   * @param {number} unit
   */
  colourOf(unit) {
    return `${this.model.core.compilations[this.model.units.all[unit].compilation]?.id} ${this.names[unit]}`;
  }

  /** @param {Map<string, number>} colours by name of a unit; what is new gets the next one */
  recolour(colours) {
    this.model.units.all.forEach((unit, number) => {
      const name = this.colourOf(number);
      const colour = colours.get(name) ?? (colours.size === 0 ? unit.colour : colours.size % COLOURS);
      colours.set(name, colour);
      unit.colour = colour;
    });
  }
}
