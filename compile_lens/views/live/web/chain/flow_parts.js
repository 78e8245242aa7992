// The parts of the row of stages that the pages of one capture and of several share.

import { h } from "../dom.js";

/**
 * The button of a phase.
 * @param {string} phase
 * @param {string} words below its name
 * @param {boolean} pressed
 * @param {() => void} act
 */
export function phaseButton(phase, words, pressed, act) {
  return h(
    "button",
    { type: "button", class: `flow-phase phase-${phase}`, "aria-pressed": String(pressed), onclick: act },
    h("span", { class: "flow-count" }, phase),
    h("span", { class: "flow-what" }, words),
  );
}

/**
 * What leads from one stage to the next: its name, an arrow, a note.
 * @param {string} name
 * @param {string} [note]
 */
export function stepWords(name, note) {
  return [
    h("span", { class: "flow-name" }, name),
    h("span", { class: "flow-arrow", "aria-hidden": "true" }),
    note ? h("span", { class: "flow-note" }, note) : null,
  ];
}
