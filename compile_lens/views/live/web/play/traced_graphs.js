// The graphs of a program that is being lowered, over those of the last one that compiled: its kernels are not known yet.

import { selectionOf } from "../data/selection.js";
import { openModel } from "../shell/main.js";
import { placeOf } from "../panes/arrangement.js";
import { PaneFrame } from "../panes/pane_frame.js";
import { decodeState } from "../shell/permalink.js";
import { scrolledIn, scrollTo } from "./take_over.js";

/** @import { App } from "../data/app.d.ts" */
/** @import { Model } from "../data/model.js" */
/** @import { Shell } from "./take_over.js" */

/** Phases of a call: a program with gradients has the other one. */
const CALL = ["forward", "inference"];

function nothing() {
  // There is no page around them that could be asked.
}
const ALONE = { close: nothing, used: nothing, size: nothing, changed: nothing, choose: nothing };

/**
 * Frames of a traced program for each graph that a page shows, laid over these and not seen yet. Only they are made, and
 * no page around them: the one of the program is to come soon.
 * @param {Record<string, string>} parts JSON by name
 * @param {Shell} old the page
 * @param {() => boolean} wanted whether they still are
 */
export async function traceOver(parts, old, wanted) {
  const model = await openModel(parts, (text) => Promise.resolve(text));
  const selection = selectionOf(model);
  /** @type {App} */
  const app = {
    ...{ model, selection, chain: selection.chain, compilation: 0 },
    ...{ choose: nothing, say: nothing, show: nothing, beside: nothing },
  };
  const state = decodeState(old.hash(), model.index, []);
  if (state) selection.replace(state.pins);
  /** @type {PaneFrame[]} */
  const frames = [];
  for (const frame of old.panes.shown) {
    const stage = stageLike(old, frame, model);
    if (stage < 1 || !wanted()) continue;
    const own = new PaneFrame(app, placeOf(stage), frame.view, ALONE);
    own.element.classList.add("frame-traced", "frame-waits");
    frame.element.append(own.element);
    frames.push(own);
    await own.ready;
    own.resized();
    const key = "";
    const place = { key, body: own.body, scrolls: own.scrolls };
    for (const one of scrolledIn([{ key, body: frame.body, scrolls: frame.scrolls }])) scrollTo([place], one);
  }
  selection.subscribe(() => {
    for (const frame of frames) frame.mark(selection.marks);
  });
  return new TracedGraphs(app, frames);
}

/**
 * The stage of a traced program that is like that of a frame; -1 if it has none.
 * @param {Shell} old
 * @param {PaneFrame} frame
 * @param {Model} model
 */
function stageLike(old, { place }, model) {
  if (place.finding || place.fusion || place.stage < 1) return -1;
  const { compilation, key } = old.model.index.stages[place.stage];
  const keys = CALL.includes(key) ? CALL : [key];
  return model.index.stages.findIndex((stage) => stage.compilation === compilation && keys.includes(stage.key));
}

export class TracedGraphs {
  /**
   * @param {App} app
   * @param {PaneFrame[]} frames
   */
  constructor(app, frames) {
    this.app = app;
    this.model = app.model;
    this.frames = frames;
  }

  /** Lets them be seen. */
  show() {
    for (const { element } of this.frames) element.classList.remove("frame-waits");
  }

  remove() {
    for (const frame of this.frames) {
      frame.element.remove();
      frame.close();
    }
  }
}
