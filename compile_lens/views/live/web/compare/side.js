// One column: its capture, the lit items, their counterparts in other columns, and a note where there are none.

import { Chain } from "../data/chain.js";
import { Selection } from "../data/selection.js";
import { h, put, shortened } from "../dom.js";
import { counterparts, pairUnits, rarest } from "./pairs.js";

/** @import { App } from "../data/app.d.ts" */
/** @import { WrappedCode } from "./code.js" */
/** @import { Model } from "../data/model.js" */
/** @import { Compared } from "../types.d.ts" */

export class Side {
  /**
   * @param {Model} model
   * @param {HTMLElement} voice
   */
  constructor(model, voice) {
    this.model = model;
    /** Names of units: the same in each capture of one program. */
    this.names = model.units.all.map(({ line, column, end }) => `${model.name(line)} ${column} ${end}`);
    /** Items of the other program that are the same. @type {Map<number, number>} */
    this.partners = new Map();
    /** Units of the other program that are the same, by unit; null where all are of one. @type {number[][] | null} */
    this.links = null;
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
    /** @type {WrappedCode | null} */
    this.pane = null;
    this.body = h("div", { class: "frame-body" });
    this.tools = h("div", { class: "frame-tools" });
  }

  /**
   * Pairs the units of two captures, whose lines may stand elsewhere and whose units may be lines in one and calls in
   * the other, by what of both is the same.
   * @param {Side} first
   * @param {[number, number][]} same items of both
   * @param {[number, number][]} more of graphs and kernels
   */
  pair(first, same, more) {
    for (const [one, two] of [...same, ...more]) {
      first.partners.set(one, two);
      this.partners.set(two, one);
    }
    const links = pairUnits(
      same.map(([one, two]) => [first.model.units.of(one), this.model.units.of(two)]),
      [first.names.length, this.names.length],
    );
    first.names = links.names[0];
    this.names = links.names[1];
    first.links = links.partners[0];
    this.links = links.partners[1];
  }

  /**
   * The counterparts on the other side: items from the same lines or calls; of two programs, paired items.
   * @param {Side} other
   * @param {number[]} items
   */
  counterparts(other, items) {
    if (this.links) return counterparts(items, this.partners, this.model, this.app.chain);
    const units = this.model.units.ofAll(items, this.app.compilation);
    const names = new Set(units.map((unit) => this.names[unit]));
    return other.model.units.all.flatMap((unit, number) =>
      unit.compilation === other.app.compilation && names.has(other.names[number]) ? unit.items : [],
    );
  }

  /**
   * A key for what has one colour: units of one name in compilations of one number; of two programs, those that are paired.
   * @param {number} unit
   */
  colourOf(unit) {
    if (this.links) return this.names[unit];
    return `${this.model.core.compilations[this.model.units.all[unit].compilation]?.id} ${this.names[unit]}`;
  }

  /** @param {Map<string, number>} colours by name of a unit; what is new gets the next one */
  recolour(colours) {
    this.model.units.all.forEach((unit, number) => {
      const name = this.colourOf(number);
      const colour = colours.get(name) ?? (colours.size === 0 ? unit.colour : rarest([...colours.values()]));
      colours.set(name, colour);
      unit.colour = colour;
    });
  }
}

export class UnmatchedNote {
  /** @param {Compared} compared */
  constructor(compared) {
    this.compared = compared;
    this.element = h("p", { class: "compare-lone", role: "status", hidden: true });
  }

  /**
   * Something was pinned in a column, or a pin taken out.
   * @param {Side} side
   * @param {number} number of the column
   * @param {Side[]} sides
   */
  update(side, number, sides) {
    const other = sides.find((one) => one !== side);
    const last = side.selection.pins.at(-1);
    const missing = this.compared.same && other && last && side.counterparts(other, last.items).length === 0;
    const { target } = this.compared.columns[1 - number] ?? { target: "" };
    put(this.element, missing ? `${shortened(last.name, 80)}: nothing in ${target} stands for it` : "");
    this.element.hidden = !missing;
  }
}
