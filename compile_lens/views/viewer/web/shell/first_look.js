// What a page shows before anyone clicks: one thing in all panes.

import { PYTHON } from "../data/model.js";

/** @import { App } from "../data/app.d.ts" */
/** @import { PaneFrame } from "./pane_frame.js" */

/** Lines of the code that a first look goes by. */
const LINES = 40;

/**
 * If nothing of the code that is in view can be seen in one of the other panes, what its first line came from comes
 * into view there.
 * @param {App} app
 * @param {PaneFrame[]} shown
 * @param {() => boolean} first whether they still stand as they were opened
 */
export async function firstLook(app, shown, first) {
  await Promise.all(shown.map(({ ready }) => ready));
  if (!first() || app.selection.pins.length) return;
  const { chain, model } = app;
  const code = shown.find(({ place }) => !place.finding && model.isCode(place.stage))?.pane?.inView?.() ?? [];
  const others = shown.filter(({ pane }) => pane?.sees);
  /** What of the same colour is above a line of the code. @param {number} item */
  const above = (item) => {
    const own = model.units.of(item);
    const nodes = chain.ancestors([item]).filter((one) => model.units.of(one).some((unit) => own.includes(unit)));
    // Of the lines that called each other only the innermost has the colour.
    const lines = new Set(own.map((unit) => model.units.all[unit].line));
    return nodes.filter((one) => model.stageOf(one) !== PYTHON || lines.has(one));
  };
  /** @param {PaneFrame} frame @param {number[]} items */
  const sees = (frame, items) => frame.pane?.sees?.(frame.own(items)) ?? true;
  if (code.length === 0 || code.slice(0, LINES).some((item) => others.every((frame) => sees(frame, above(item)))))
    return;
  const items = above(code[0]);
  for (const frame of others) if (!sees(frame, items)) frame.follow(items);
}
