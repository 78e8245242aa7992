// The rows of kernels whose names a search found: it goes on to them after the lines.

/** @import { CodePane } from "./pane.js" */

export class FoundNames {
  /** @param {CodePane} pane */
  constructor(pane) {
    this.pane = pane;
    /** @type {HTMLElement[]} */
    this.rows = [];
  }

  /**
   * Marks the rows of the kernels whose names hold a text; how many.
   * @param {string} wanted
   */
  find(wanted) {
    const looked = wanted.toLowerCase();
    const { tabs } = this.pane;
    this.rows = tabs.filter((tab) => looked && tab.title.toLowerCase().includes(looked));
    for (const tab of tabs) tab.toggleAttribute("data-found", this.rows.includes(tab));
    return this.rows.length;
  }

  /**
   * Brings one of these rows into view.
   * @param {number} match -1 and what is past them: none
   */
  show(match) {
    this.rows.forEach((tab, i) => tab.setAttribute("data-found", i === match ? "now" : ""));
    const tab = this.rows[match];
    if (tab) this.pane.showTab(Number(tab.dataset.page));
  }
}
