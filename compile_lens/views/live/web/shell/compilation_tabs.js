// Tabs for several compilations, and in a line what is special about the one that is shown.

import { grouped, h, put } from "../dom.js";

/** @import { Compilation, Core } from "../types.d.ts" */

/** Tabs that are made at once; a record of thousands of recompiles should not fill the page with them. */
const MOST_COMPILATION_TABS = 200;

export class CompilationTabs {
  /**
   * @param {Core} core
   * @param {(number: number) => void} choose
   * @param {() => void} open shows how the compilation was traced
   */
  constructor({ compilations, words }, choose, open) {
    this.compilations = compilations;
    this.words = words;
    this.open = open;
    this.tabs =
      compilations.length > 1
        ? compilations.slice(0, MOST_COMPILATION_TABS).map((c, i) => compilationTab(c, () => choose(i)))
        : [];
    this.said = h("div", { class: "banners" });
    this.list = h("div", { class: "tabs", role: "tablist", "aria-label": "compilations" }, this.tabs);
    this.list.addEventListener("keydown", (event) => this.step(event));
    const more = compilations.length - MOST_COMPILATION_TABS;
    this.element = h(
      "div",
      {},
      this.tabs.length ? this.list : null,
      more > 0 ? h("p", { class: "note" }, `and ${grouped(more)} more compilations: capture.compilations`) : null,
      this.said,
    );
  }

  /** @param {number} number */
  choose(number) {
    this.tabs.forEach((tab, i) => {
      tab.setAttribute("aria-selected", String(i === number));
      tab.tabIndex = i === number ? 0 : -1;
    });
    const compilation = this.compilations[number];
    put(this.said, compilation ? this.banners(compilation) : null);
  }

  /** @param {KeyboardEvent} event */
  step(event) {
    const at = this.tabs.findIndex((tab) => tab.tabIndex === 0);
    const last = this.tabs.length - 1;
    /** @type {Record<string, number>} */
    const to = { ArrowLeft: at > 0 ? at - 1 : last, ArrowRight: at < last ? at + 1 : 0, Home: 0, End: last };
    if (!Object.hasOwn(to, event.key)) return;
    event.preventDefault();
    this.tabs[to[event.key]].click();
    this.tabs[to[event.key]].focus();
  }

  /** @param {Compilation} compilation */
  banners({ recompile, ending, dynamic }) {
    const banners = [];
    if (recompile.length) banners.push(this.banner("a recompile", recompile[0], "every reason"));
    if (ending) banners.push(this.banner(this.words.broke, ending.what, ending.hint ? "why, and a hint" : "why"));
    if (dynamic.length) {
      const some = dynamic.slice(0, 4).join(", ") + (dynamic.length > 4 ? `, and ${dynamic.length - 4} more` : "");
      banners.push(this.banner("dynamic dimensions", some, "all of them", " banner-plain"));
    }
    return banners;
  }

  /**
   * @param {string} what
   * @param {string} why
   * @param {string} more
   * @param {string} [look]
   */
  banner(what, why, more, look = "") {
    return h(
      "p",
      { class: `banner${look}` },
      h("b", {}, `${what}: `),
      h("span", { class: "banner-why" }, why),
      h("button", { type: "button", class: "link", onclick: () => this.open() }, more),
    );
  }
}

/**
 * @param {Compilation} compilation
 * @param {() => void} choose
 */
function compilationTab({ id, name, function: own, place, recompile, ending }, choose) {
  return h(
    "button",
    {
      type: "button",
      class: "tab",
      role: "tab",
      "aria-selected": "false",
      tabindex: "-1",
      title: `${id} ${name}, ${place}${own === name ? "" : `; torch calls it ${own}`}`,
      onclick: choose,
    },
    h("span", { class: "tab-id" }, id),
    h("span", { class: "tab-name" }, name),
    place ? h("span", { class: "tab-place" }, place) : null,
    recompile.length ? h("span", { class: "tab-badge" }, "recompile") : null,
    ending ? h("span", { class: "tab-badge" }, "graph break") : null,
  );
}
