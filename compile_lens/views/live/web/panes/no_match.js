// The reason why a pane shows nothing of a pin, and the buttons that open the compilations that do.

import { button, h, shortened } from "../dom.js";

/** @import { App } from "../data/app.d.ts" */
/** @import { Reach } from "../data/reasons.js" */

/** Compilations that are led to. */
const MOST = 3;

/**
 * @param {App} app
 * @param {Reach | null} reach the chain of the pin
 * @param {string} name of the pin
 * @param {number[]} stages that the pane shows
 * @param {(compilation: number) => void} open
 * @returns {{ content: (string | Node)[], elsewhere: boolean }} no words where it shows something; and whether other
 *   compilations have all of it
 */
export function noMatch(app, reach, name, stages, open) {
  // A finding is of no stage.
  const why = stages.length ? stages.map((stage) => reach?.why(stage) ?? "").reduce((one, other) => one && other) : "";
  if (!reach || !why) return { content: [], elsewhere: false };
  const { core, index } = app.model;
  const others = reach.others(index.stages[stages[0]].compilation);
  const content = [
    h("b", {}, shortened(name, 40)),
    `${others.length ? ":" : " has no match in this stage:"} ${why} `,
    ...others
      .slice(0, MOST)
      .map((one) => button(`open ${core.compilations[one].id}`, () => open(one), { class: "button frame-open" })),
  ];
  return { content, elsewhere: others.length > 0 };
}
