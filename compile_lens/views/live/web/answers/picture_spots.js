// A picture whose parts can be pointed at: each says its words below, and lights up what it links to.

import { h, put } from "../dom.js";

/** @import { Linking } from "../code/additions.js" */
/** @import { PictureSection } from "../types.d.ts" */

/** Keys that lead from a part to another, and how far. @type {Record<string, number>} */
const STEPS = { ArrowLeft: -1, ArrowRight: 1 };

/**
 * @param {Linking} pane
 * @param {PictureSection} section
 * @param {HTMLElement} image
 */
export function pictureWithSpots(pane, { spots, alt }, image) {
  if (spots.length === 0) return image;
  const words = h("p", { class: "hotspot-words" });
  /** @param {number} chosen */
  const choose = (chosen) => {
    for (const [i, button] of buttons.entries()) {
      button.ariaCurrent = String(i === chosen);
      // One stop of the Tab key; arrows lead to the others.
      button.tabIndex = i === Math.max(chosen, 0) ? 0 : -1;
    }
    put(words, spots[chosen]?.words ?? "");
  };
  const buttons = spots.map(({ start, end, words: own }, i) =>
    h("button", {
      type: "button",
      class: "hotspot",
      style: `left:${start}%;width:${end - start}%`,
      "aria-label": own,
      onpointerover: () => choose(i),
      onfocus: () => choose(i),
    }),
  );
  const box = h("div", { class: "hotspots", role: "group", "aria-label": alt }, image, buttons);
  box.addEventListener("keydown", (event) => {
    const at = buttons.findIndex((button) => button === event.target);
    const next = buttons[at + (STEPS[event.key] ?? NaN)];
    if (at < 0 || !(event.key in STEPS)) return;
    next?.focus();
    event.preventDefault();
    event.stopPropagation();
  });
  for (const [i, { items }] of spots.entries()) if (items.length) pane.link(buttons[i], buttons[i], items);
  choose(spots.findIndex(({ chosen }) => chosen));
  return h("div", {}, box, words);
}
