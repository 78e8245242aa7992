// The lines that move borders of panes: one between two neighbours, one below all of them.

import { LEAST_WIDTH, sharesMoved } from "./arrangement.js";
import { separator } from "../controls/resizer.js";

/** @import { PaneFrame } from "./pane_frame.js" */

/** Pixels of height: what a row keeps, and what it may get. */
const LEAST_HEIGHT = 200;
const MOST_HEIGHT = 4000;

/**
 * The facts that the borders know of the panes.
 * @typedef {object} Row
 * @property {HTMLElement} row
 * @property {PaneFrame[]} shown left to right
 * @property {Map<string, number>} shares parts of the width, by key; 1 where nobody moved a border
 * @property {() => void} settle makes what the panes have now their shares
 * @property {() => void} lay puts them where they tell most
 */

/**
 * The line between two frames.
 * @param {Row} panes
 * @param {PaneFrame} left
 * @param {PaneFrame} right
 */
export function columnBorder(panes, left, right) {
  /** @returns {[number, number]} */
  const measured = () => [left.element.offsetWidth, right.element.offsetWidth];
  /** @type {[number, number]} */
  let widths = [0, 0];
  const keys = [left.place.key, right.place.key];
  /** @type {[number, number]} */
  let shares = [1, 1];
  const apply = () => {
    [left, right].forEach((frame, i) => {
      panes.shares.set(keys[i], shares[i]);
      frame.element.style.flexGrow = String(shares[i]);
    });
    left.resized();
    right.resized();
  };
  const border = separator({
    across: false,
    label: `border of ${left.title} and ${right.title}`,
    begin: () => {
      panes.settle();
      widths = measured();
      shares = [panes.shares.get(keys[0]) ?? 1, panes.shares.get(keys[1]) ?? 1];
      // Shares and widths differ where a pane is held at its least width: what is seen counts.
      const sum = shares[0] + shares[1];
      const total = Math.max(1, widths[0] + widths[1]);
      shares = [(sum * widths[0]) / total, (sum * widths[1]) / total];
    },
    drag: (by) => {
      shares = sharesMoved(shares, widths, by);
      apply();
    },
    reset: () => {
      for (const frame of panes.shown) {
        panes.shares.delete(frame.place.key);
        frame.element.style.flexGrow = "1";
      }
      panes.lay();
      for (const frame of panes.shown) frame.resized();
    },
    value: () => {
      const [one, other] = measured();
      return { now: one, least: LEAST_WIDTH, most: one + other - LEAST_WIDTH };
    },
  });
  // The widths are known once the line is in the page; reading them at once would lay out the page twice.
  border.element.addEventListener("focus", border.refresh);
  border.element.addEventListener("pointerenter", border.refresh);
  border.element.setAttribute("aria-valuenow", "50");
  return border.element;
}

/**
 * The line below the row, that sets its height.
 * @param {Row} panes
 */
export function rowBorder(panes) {
  let height = 0;
  const border = separator({
    across: true,
    label: "height of the panes",
    begin: () => {
      height = panes.row.offsetHeight;
    },
    drag: (by) => {
      const wanted = Math.min(MOST_HEIGHT, Math.max(LEAST_HEIGHT, height + by));
      panes.row.style.flex = "none";
      panes.row.style.minHeight = `${LEAST_HEIGHT}px`;
      panes.row.style.height = `${wanted}px`;
      for (const frame of panes.shown) frame.resized();
    },
    reset: () => {
      panes.row.style.flex = "";
      panes.row.style.minHeight = "";
      panes.row.style.height = "";
      for (const frame of panes.shown) frame.resized();
    },
    value: () => ({ now: panes.row.offsetHeight, least: LEAST_HEIGHT, most: MOST_HEIGHT }),
  });
  border.element.addEventListener("focus", border.refresh);
  border.element.setAttribute("aria-valuenow", "520");
  return border.element;
}
