// The keys of an app. On a page of its own it gets those of the page; in a notebook they are the notebook's, unless the
// focus is inside.

import { AGAIN } from "../data/units.js";
import { h } from "../dom.js";

const KEYS =
  "/ find · n N next, previous · f b forward, backward · w why · m enlarge · Enter pin · Esc clear · in a graph: arrows, + − 0 zoom, n neighbours, o open";

/**
 * Opens the list of the keys, or closes what it stands in.
 * @param {HTMLElement} app
 */
export function showKeys(app) {
  const opener = /** @type {HTMLElement} */ (app.querySelector(".top-about"));
  opener.click();
  opener.focus(); // it hears Escape
  app.querySelector(".about-keys")?.scrollIntoView({ block: "nearest" });
}

/** The list of the keys, and the look of a box that its words do not explain. */
export function keyList() {
  return h("p", { class: "about-keys" }, h("b", {}, "Keys "), KEYS, h("br"), AGAIN);
}

/**
 * Does what a letter stands for while nothing is typed. Returns true if it stands for something.
 * @param {KeyboardEvent} event
 * @param {Record<string, () => void>} acts
 */
export function actOnLetter(event, acts) {
  const [target] = event.composedPath();
  const typing = target instanceof HTMLInputElement || target instanceof HTMLSelectElement;
  if (typing || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return false;
  if (!Object.hasOwn(acts, event.key)) return false;
  acts[event.key]();
  event.preventDefault();
  event.stopPropagation();
  return true;
}

/**
 * @param {HTMLElement} host what the app stands in
 * @param {boolean} standalone whether the page is its own
 * @param {(event: KeyboardEvent) => void} act
 */
export function listenToKeys(host, standalone, act) {
  host.addEventListener("keydown", act);
  if (!standalone) return;
  // Nothing has the focus when a page opens, and none is left where what had it went with Back.
  document.addEventListener("keydown", (event) => {
    if (event.target === document.body || event.target === document.documentElement) act(event);
  });
}
