// The machine code of a kernel beside its source: which form is shown, and which lines of the source made its lines.

import { button, h } from "../dom.js";
import { copyButton } from "../listing/finder.js";
import { kernelCosts, kernelLinks } from "./kernel_facts.js";
import { Listing } from "../listing/listing.js";
import { compact } from "./machine_text.js";

/** @import { App } from "../data/app.d.ts" */
/** @import { FormsData, KernelData } from "../types.d.ts" */

/**
 * Parts of machine code that have an ink of their own, by group: 1 comment, 2 directive or label, 3 operation, 4 number,
 * 5 text. One pattern for all the compilers' dialects: those tell much the same apart.
 */
const FORM_PIECES =
  /(\/\/.*|\/\*.*?\*\/|^[\da-f]{4,} |(?<=^\s*|\s)[;#] .*)|(?<=^\s*)([\w.$]+:|\.[\w.]+)|(?<=^\s*(?:[\da-f]{4,} |\/\*\w+\*\/\s*)?(?:@\S+\s+)?(?:%\S+ = )?"?)([a-zA-Z][\w.]*)|(?<![\w%$.#])(0x[\da-fA-F]+|\d[\d.]*(?:e[-+]?\d+)?)\b|("[^"\n]*")/gm;

/** The ink of each group. */
const FORM_INKS = [1, 2, 3, 4, 7];

/**
 * The colours of machine code, found here since so few of its texts are opened.
 * @param {string} text
 */
export function formInks(text) {
  /** @type {number[]} */
  const inks = [];
  let end = 0;
  for (const match of text.matchAll(FORM_PIECES)) {
    const ink = FORM_INKS[match.findIndex((group, i) => i > 0 && group !== undefined) - 1];
    if (match.index > end) inks.push((match.index - end) * 16);
    inks.push(match[0].length * 16 + ink);
    end = match.index + match[0].length;
  }
  return inks;
}

export class KernelForms {
  /**
   * @param {App} app
   * @param {KernelData} kernel
   * @param {HTMLElement} beside where the source stands
   * @param {() => void} changed another form is shown, or none
   */
  constructor(app, kernel, beside, changed) {
    this.app = app;
    this.kernel = kernel;
    this.beside = beside;
    this.changed = changed;
    /** @type {Listing | null} */
    this.listing = null;
    this.shown = -1;
    this.buttons = kernel.forms.map((title, i) =>
      button(title, () => this.show(i), { class: "button", pressed: false }),
    );
    /** The text as the compiler wrote it, its columns too: what one copies. */
    this.text = "";
    this.copy = copyButton(app, () => this.text, "copy the machine code");
    this.none = h("span", {});
    this.element = h(
      "div",
      { class: "code-forms", role: "group", "aria-label": "machine code beside the source" },
      this.buttons,
      this.copy,
      this.none,
      h("span", { class: "code-costs" }, kernelCosts(kernel).join(" · ")),
    );
    this.copy.hidden = true;
  }

  /**
   * Shows a form; the one that is shown is put away.
   * @param {number} number
   */
  async show(number) {
    this.shown = this.shown === number ? -1 : number;
    this.close();
    this.listing = null;
    const { shown, kernel, app } = this;
    this.buttons.forEach((one, i) => one.setAttribute("aria-pressed", String(i === shown)));
    if (shown >= 0) {
      /** @type {FormsData} */
      const data = await app.model.payload.get(kernel.part);
      if (this.shown !== shown) return;
      const { text: whole, items, folds } = data.forms[shown];
      // Of a compiler's own language the indents say what is in what.
      const text = kernel.forms[shown].endsWith("IR") ? whole : compact(whole);
      this.text = whole;
      const links = kernelLinks(app, { ...kernel, items, noOrigin: [] }, 0);
      const source = kernel.source?.text.split("\n") ?? [];
      for (const [line, item] of items) {
        const from = Number(app.model.name(item).split(":").pop());
        links.titles.set(line, `line ${from + (kernel.first || 1) - 1}: ${source[from - 1]?.trim()}`);
      }
      this.listing = new Listing(app, {
        text: { text, inks: formInks(text) },
        label: `${kernel.forms[shown]} of ${kernel.name}`,
        folds,
        coloured: true,
        tagged: true,
        ...links,
      });
      this.beside.append(this.listing.element);
      // A narrow pane scrolls.
      this.beside.parentElement?.scrollTo(0, this.beside.offsetTop);
    }
    this.copy.hidden = shown < 0;
    this.changed();
  }

  /**
   * Brings what is pinned into view, and says where no line of it is.
   * @param {number[]} items the chain of the pin; none without one
   */
  reveal(items) {
    const seen = this.listing?.reveal(items) ?? true;
    this.none.textContent =
      items.length === 0 || seen ? "" : `no line of ${this.kernel.forms[this.shown]} is linked to what is pinned`;
  }

  close() {
    this.listing?.element.remove();
    this.listing?.close();
  }
}
