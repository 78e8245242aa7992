// In the fusion view, below a group: which groups before it it was not fused with, and why.

import { pairLines, notFusedPairs, pairItems } from "../data/not_fused.js";
import { h, shortened } from "../dom.js";

/** @import { NotFusedPair } from "../data/not_fused.js" */
/** @import { App } from "../data/app.d.ts" */
/** @import { GraphData } from "../types.d.ts" */

/** Groups that one is not fused with, named at it. */
const REASONS_SHOWN = 4;

export class FusionReasons {
  /**
   * @param {App} app
   * @param {number} stage of the groups
   * @param {GraphData} data of that stage
   */
  constructor(app, stage, data) {
    const { start } = app.model.index.stages[stage];
    this.app = app;
    /** Pairs by the item of the group that runs later. @type {Map<number, { items: number[], pair: NotFusedPair }[]>} */
    this.pairs = new Map();
    for (const pair of notFusedPairs(data)) {
      const own = this.pairs.get(start + pair.second) ?? [];
      own.push({ items: [start + pair.first, start + pair.second], pair });
      this.pairs.set(start + pair.second, own);
    }
  }

  /**
   * The reasons at a group; null where there is none.
   * @param {number} item
   */
  of(item) {
    const own = this.pairs.get(item) ?? [];
    if (own.length === 0) return null;
    const shown = own.slice(0, REASONS_SHOWN).map(({ items, pair }) =>
      h(
        "button",
        {
          type: "button",
          class: "fusion-why",
          "data-pair": items.join(" "),
          "aria-pressed": String(this.app.selection.isPinned(items)),
          title: pairLines(pair).join("\n"),
        },
        "≠ ",
        h("bdi", {}, shortened(this.app.model.name(items[0]), 32)),
        `: ${pair.reason}${pair.saved ? `, could save ${pair.saved}` : ""}`,
      ),
    );
    const more = own.length - shown.length;
    return h(
      "div",
      { class: "fusion-pairs", role: "group", "aria-label": "not fused with" },
      shown,
      more > 0 ? h("span", { class: "fusion-more-pairs" }, `and ${more} more`) : null,
    );
  }

  /**
   * Shows which pairs are pinned.
   * @param {Element} place
   */
  mark(place) {
    for (const element of place.querySelectorAll("[data-pair]")) {
      const pinned = String(this.app.selection.isPinned(pairItems(element)));
      if (element.getAttribute("aria-pressed") !== pinned) element.setAttribute("aria-pressed", pinned);
    }
  }
}
