// The capture told in sentences. What a sentence is about lights up with it, and a click pins it.

import { h, shortened } from "../dom.js";

/** @import { App, Marks, Pane } from "../data/app.d.ts" */
/** @import { StoryData, StorySentence } from "../types.d.ts" */

/** @implements {Pane} */
export class StoryPane {
  /**
   * @param {App} app
   * @param {StoryData} data
   */
  constructor(app, data) {
    this.app = app;
    /** @type {HTMLElement | null} */
    this.tools = null;
    /** @type {{ element: HTMLElement, items: number[] }[]} */
    this.linked = [];
    this.element = h(
      "div",
      { class: "story", role: "group", "aria-label": "story" },
      h("h2", {}, data.title),
      data.chapters.map(({ title, sentences }) =>
        h("section", {}, title ? h("h3", {}, title) : null, [
          h(
            "p",
            {},
            sentences.flatMap((one) => [this.sentence(one), " "]),
          ),
        ]),
      ),
      data.left ? h("p", { class: "note" }, data.left) : null,
    );
  }

  /** @param {StorySentence} sentence */
  sentence({ text, items }) {
    if (items.length === 0) return h("span", {}, text);
    const { selection } = this.app;
    const name = shortened(text, 40);
    const element = h(
      "span",
      {
        class: "story-link",
        role: "button",
        tabindex: "0",
        onpointerover: () => selection.preview(items, name),
        onpointerleave: () => selection.preview([]),
        onfocus: () => selection.preview(items, name),
        onblur: () => selection.preview([]),
        onclick: () => selection.toggle(items, name),
        onkeydown: (/** @type {KeyboardEvent} */ event) => {
          if (event.key !== "Enter" && event.key !== " ") return;
          selection.toggle(items, name);
          event.preventDefault();
        },
      },
      text,
    );
    this.linked.push({ element, items });
    return element;
  }

  /** @param {Marks} marks */
  mark(marks) {
    for (const { element, items } of this.linked) {
      element.classList.toggle(
        "lit",
        items.some((item) => marks.has(item)),
      );
      element.setAttribute("aria-pressed", String(this.app.selection.isPinned(items)));
    }
  }
}
