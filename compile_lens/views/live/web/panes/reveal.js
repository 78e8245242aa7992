// The places that panes scroll to after a click in another one.

import { PYTHON } from "../data/model.js";
import { turnOfOthers } from "../dom.js";

/** @import { App } from "../data/app.d.ts" */
/** @import { PaneFrame } from "./pane_frame.js" */

/**
 * Brings panes to the first of a chain's items in the order of the record, of those that keep their colours if there
 * are any.
 * @param {App} app
 * @param {PaneFrame[]} frames
 * @param {string | undefined} but key of the place of one that stays
 * @param {Iterable<number>} chain of Python lines the nearest first: it says more than those that called it
 */
export async function toFirstHits({ model, selection }, frames, but, chain) {
  const nearest = [...chain];
  const first = [...nearest].sort((a, b) => a - b);
  const coloured = first.filter((item) => model.units.of(item).some((unit) => selection.units?.has(unit)));
  for (const frame of frames) {
    if (frame.place.key === but) continue;
    // Each pane lays itself out anew: what is pointed at or clicked meanwhile has its turn in between.
    await turnOfOthers();
    if (frame.closed) continue;
    if (frame.place.stage === PYTHON) frame.follow(nearest);
    else frame.follow(frame.own(coloured).length ? coloured : first);
  }
}
