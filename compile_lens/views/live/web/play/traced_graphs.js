// The graphs of a program that is being lowered, over those of the last one that compiled: its kernels are not known yet.

import { openCapture } from "../shell/main.js";
import { placeOf } from "../panes/arrangement.js";
import { decodeState } from "../shell/permalink.js";
import { scrolledIn, scrollTo } from "./take_over.js";

/** @import { PaneFrame } from "../panes/pane_frame.js" */
/** @import { Shell } from "./take_over.js" */

/** Phases of a call: a program with gradients has the other one. */
const CALL = ["forward", "inference"];

/**
 * Frames of a traced program for each graph that a page shows, laid over these and not seen yet.
 * @param {Record<string, string>} parts JSON by name
 * @param {Shell} old the page
 * @param {() => boolean} wanted whether they still are
 */
export async function traceOver(parts, old, wanted) {
  const shell = await openCapture(old.host, parts, (text) => Promise.resolve(text), false);
  const state = decodeState(old.hash(), shell.model.index, shell.findings());
  if (state) shell.app.selection.replace(state.pins);
  /** @type {PaneFrame[]} */
  const frames = [];
  for (const frame of old.panes.shown) {
    const stage = stageLike(old, frame, shell);
    if (stage < 1 || !wanted()) continue;
    const own = shell.panes.frame(placeOf(stage), frame.view);
    own.element.classList.add("frame-traced", "frame-waits");
    frame.element.append(own.element);
    frames.push(own);
    await own.ready;
    own.resized();
    const key = "";
    const place = { key, body: own.body, scrolls: own.scrolls };
    for (const one of scrolledIn([{ key, body: frame.body, scrolls: frame.scrolls }])) scrollTo([place], one);
  }
  shell.app.selection.subscribe(() => {
    for (const frame of frames) frame.mark(shell.app.selection.marks);
  });
  return new TracedGraphs(shell, frames);
}

/**
 * The stage of a traced program that is like that of a frame; -1 if it has none.
 * @param {Shell} old
 * @param {PaneFrame} frame
 * @param {Shell} shell
 */
function stageLike(old, { place }, shell) {
  if (place.finding || place.fusion || place.stage < 1) return -1;
  const { compilation, key } = old.model.index.stages[place.stage];
  const keys = CALL.includes(key) ? CALL : [key];
  return shell.model.index.stages.findIndex((stage) => stage.compilation === compilation && keys.includes(stage.key));
}

export class TracedGraphs {
  /**
   * @param {Shell} shell
   * @param {PaneFrame[]} frames
   */
  constructor(shell, frames) {
    this.shell = shell;
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
