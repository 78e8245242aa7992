// What is said where nothing on the other side stands for what was pinned.

import { h, put, shortened } from "../dom.js";

/** @import { Compared } from "../types.d.ts" */
/** @import { Side } from "./side.js" */

export class LoneNote {
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
  tell(side, number, sides) {
    const other = sides.find((one) => one !== side);
    const last = side.selection.pins.at(-1);
    const lone = this.compared.same && other && last && side.like(other, last.items).length === 0;
    const { target } = this.compared.columns[1 - number] ?? { target: "" };
    put(this.element, lone ? `${shortened(last.name, 80)}: nothing in ${target} stands for it` : "");
    this.element.hidden = !lone;
  }
}
