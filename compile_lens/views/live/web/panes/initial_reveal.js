// The first view of a page, before anyone clicks: one thing in all panes.

import { PYTHON } from "../data/model.js";

/** @import { App } from "../data/app.d.ts" */
/** @import { PaneFrame } from "./pane_frame.js" */

/** Lines of the code that a first look goes by. */
const LINES = 40;

/**
 * If nothing of the code that is in view can be seen in all of the other panes, what is nearest there of what one of
 * its lines came from comes into view.
 * @param {App} app
 * @param {PaneFrame[]} shown
 * @param {() => boolean} first whether they still stand as they were opened
 * @param {boolean} phone whether they stand below each other, so that a graph is not seen with the code: it opens at its
 *   top, as one that is too large to be drawn whole
 */
export async function firstLook(app, shown, first, phone) {
  await Promise.all(shown.map(({ ready }) => ready));
  if (!first() || app.selection.pins.length) return;
  const { chain, model } = app;
  const code = shown.find(({ place }) => !place.finding && model.isCode(place.stage));
  const others = shown.filter(
    ({ pane, place }) => pane?.far && (place.stage === PYTHON || !(phone || pane.note?.hidden === false)),
  );
  /** The items of the same colour above a line of the code. @param {number} item */
  const above = (item) => {
    const own = model.units.of(item);
    const nodes = chain.ancestors([item]).filter((one) => model.units.of(one).some((unit) => own.includes(unit)));
    // Of the lines that called each other only the innermost has the colour.
    const lines = new Set(own.map((unit) => model.units.all[unit].line));
    return nodes.filter((one) => model.stageOf(one) !== PYTHON || lines.has(one));
  };
  /** @type {number[]} */
  let wanted = [];
  let least = Infinity;
  for (const [item, cut] of code?.pane?.inView?.().slice(0, LINES) ?? []) {
    const items = above(item);
    const far = others.reduce((sum, frame) => sum + frame.far(items), cut);
    if (wanted.length && far >= least) continue;
    wanted = cut ? [...items, item] : items;
    least = far;
  }
  code?.follow(wanted);
  for (const frame of others) {
    // Functions of libraries stay folded until a reader asks for them.
    const folds = frame.place.stage === PYTHON && model.core.sources.some(({ library }) => library);
    const distance = frame.far(wanted);
    if (!distance || (folds && distance === Infinity)) continue;
    const far = new Map(frame.own(wanted).map((item) => [item, frame.far([item])]));
    frame.follow([...far.keys()].sort((one, other) => Number(far.get(one)) - Number(far.get(other)) || one - other));
    const note = frame.pane?.note;
    const why = code?.pane?.first?.why;
    const whole = `Shown first: what the open kernel computes${why ? `; ${why}` : ""}.`;
    if (note) {
      note.append(`${note.hidden ? "" : "."} ${whole}`);
      note.hidden = false;
      continue;
    }
    const facts = frame.element.querySelector(".frame-facts");
    facts?.classList.add("frame-remark");
    facts?.setAttribute("title", whole);
    facts?.replaceChildren("at the kernel's lines");
  }
}
