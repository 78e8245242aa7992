// The steps between the operators and the kernels, in the story's own sentences, at the foot of the code.

import { h, put } from "../dom.js";

/** @import { App } from "../data/app.d.ts" */
/** @import { StoryData } from "../types.d.ts" */

/** Sentences that tell it, and how many of them stand there. */
const KEYS = ["inlined", "fused", "one_loop", "counts", "traffic"];
const MOST = 4;
/** Characters of a sentence that has its place there; others are in the story. */
const SHORT = 170;

/**
 * @param {App} app
 * @param {number} stage the code
 */
export function between(app, stage) {
  const element = h("div", { class: "between", hidden: true });
  const { compilation } = app.model.index.stages[stage];
  const phase = app.model.phase(stage);
  void app.model.payload.get("story").then((/** @type {StoryData} */ { chapters }) => {
    const sentences = chapters
      .flatMap(({ sentences }) => sentences)
      .filter((one) => one.compilation === compilation && one.phase === phase && KEYS.includes(one.key))
      .filter(({ text }) => text.length <= SHORT)
      .slice(0, MOST);
    if (sentences.length === 0) return;
    put(
      element,
      h("b", {}, `In between, all of ${phase}`),
      sentences.map(({ text }) => h("p", {}, text)),
    );
    element.hidden = false;
  });
  return element;
}
