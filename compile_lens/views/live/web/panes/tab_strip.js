// The title or the tabs in the head of a pane.

import { h, put } from "../dom.js";

/** @import { Tab } from "./tabs.js" */

/** @typedef {Tab & { pressed: boolean, act: () => void }} FrameTab `pressed`: its place is shown */

/**
 * A title whose phase goes where there is no room: the row above the panes says it too.
 * @param {string} title
 */
export function titleWords(title) {
  return title
    .split(/((?:forward|backward|inference) )(?=.)/)
    .map((words, i) => (i % 2 ? h("span", { class: "frame-phase" }, words) : words));
}

export function tabStrip() {
  return h("div", { class: "frame-tabs", role: "group", "aria-label": "what this pane can show", hidden: true });
}

/**
 * Puts tabs into a strip and brings the one that is shown into view.
 * @param {HTMLElement} strip
 * @param {FrameTab[]} tabs
 * @param {HTMLElement[]} pages what the shown pane has for its kernels and its module: these know which of them it shows
 */
export function fillTabs(strip, tabs, pages) {
  put(
    strip,
    tabs.map(({ page, title, badge, amber, pressed, act }) => {
      const own = pressed && page ? pages[page === "module" ? 1 : 0] : null;
      if (own) {
        put(own, titleWords(title));
        return own;
      }
      return h(
        "button",
        { type: "button", class: "frame-tab", "aria-pressed": String(pressed && page !== "module"), onclick: act },
        titleWords(title),
        badge ? " " : "",
        badge ? h("span", { class: amber ? "frame-badge frame-badge-amber" : "frame-badge" }, badge) : null,
      );
    }),
  );
  strip.hidden = tabs.length === 0;
  // Measured with the frame: here it would lay out a pane that is still being filled.
  if (tabs.length > 1) requestAnimationFrame(() => bringPressed(strip));
}

/** @param {HTMLElement} strip */
function bringPressed(strip) {
  const now = strip.querySelector('[aria-pressed="true"]');
  if (now instanceof HTMLElement && now.offsetLeft + now.offsetWidth > strip.clientWidth)
    strip.scrollLeft = now.offsetLeft;
}
