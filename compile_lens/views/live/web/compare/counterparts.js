// What of another program is the same as some items of one. No elements.

import { PYTHON } from "../data/model.js";

/** @import { Chain } from "../data/chain.js" */
/** @import { Model } from "../data/model.js" */

/** Stages whose nodes were matched with the other's one by one: what is not paired there has no like. */
const MATCHED = /^(dynamo|forward|backward|inference)(\.post_grad)?$/;

/**
 * The partners of some items, as `diff` matched them. A Python line is what Dynamo read from it; a line of a kernel, a
 * loop or a kernel without a partner is the operators that it computes.
 * @param {number[]} items
 * @param {ReadonlyMap<number, number>} partners
 * @param {Pick<Model, "index" | "stageOf">} model
 * @param {Pick<Chain, "above" | "below">} chain
 * @returns {number[]}
 */
export function likeItems(items, partners, model, chain) {
  const found = new Set();
  const seen = new Set(items);
  for (const item of seen) {
    const partner = partners.get(item);
    const stage = model.stageOf(item);
    if (partner !== undefined) found.add(partner);
    else if (stage === PYTHON) {
      if (items.includes(item)) for (const below of chain.below(item)) seen.add(below);
    } else if (!MATCHED.test(model.index.stages[stage].key)) for (const above of chain.above(item)) seen.add(above);
  }
  return [...found];
}
