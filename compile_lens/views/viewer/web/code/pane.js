// A generated module and its kernels: the whole text, and each kernel by itself.

import { button, h, plural, put, shortened } from "../dom.js";
import { Finder, copyButton } from "./finder.js";
import { kernelHead, kernelLinks, moduleLinks, remarkList } from "./kernel_facts.js";
import { KernelForms } from "./kernel_forms.js";
import { Listing } from "./listing.js";
import { litLineClass } from "./listing_block.js";

/** @import { App, Marks, Pin } from "../data/app.d.ts" */
/** @import { CodeData, KernelData } from "../types.d.ts" */

/** @typedef {{ kernel: KernelData | null, panel: HTMLElement, listing: Listing | null, name: HTMLElement | null, forms: KernelForms | null }} CodePage */

/** With more kernels than this a list stands in place of the tabs. */
const MOST_TABS = 8;

/** Lit kernels that are named beside the list. */
const LIT_NAMED = 4;

/** Number of the module's page; kernel `i` has page `i + 1`. */
const MODULE = 0;

export class CodePane {
  /**
   * @param {App} app
   * @param {number} stage
   * @param {CodeData} data
   */
  constructor(app, stage, data) {
    this.app = app;
    this.data = data;
    this.stage = stage;
    /** Pages that were opened. @type {Map<number, CodePage>} */
    this.pages = new Map();
    this.shown = -1;
    this.marks = app.selection.marks;
    /** The kernel of each kernel's item and of those of its lines. @type {Map<number, number>} */
    this.kernelOf = new Map(
      data.kernels.flatMap((kernel, i) =>
        [kernel.item, ...kernel.items.map(([, item]) => item)].map(
          (item) => /** @type {[number, number]} */ ([item, i]),
        ),
      ),
    );
    /** Mark of each kernel. */
    this.kernelBits = new Uint8Array(data.kernels.length);
    /** The pin that the machine code was brought to last. @type {Pin | null | undefined} */
    this.pin = app.selection.pins.at(-1);
    this.finder = new Finder(app, () => this.listings());
    /** @type {HTMLElement | null} */
    this.tools = h(
      "div",
      { class: "listing-tools" },
      this.finder.element,
      copyButton(app, () => this.text()),
    );
    /** @type {HTMLButtonElement[]} */
    this.tabs = [];
    /** @type {HTMLSelectElement | null} */
    this.list = null;
    this.litNames = h("div", { class: "code-lit" });
    this.body = h("div", { class: "code-body" });
    this.element = h(
      "div",
      { class: "code-pane" },
      data.kernels.length > MOST_TABS ? this.kernelList() : this.kernelTabs(),
      this.body,
    );
    this.listen();
    this.open(MODULE);
  }

  kernelTabs() {
    this.tabs = [null, ...this.data.kernels].map((kernel, page) => {
      const tab = h(
        "button",
        {
          type: "button",
          role: "tab",
          class: "code-tab",
          title: kernel ? kernel.name : "the whole module",
          "data-item": kernel?.item,
          "data-page": page,
        },
        kernel ? shortened(kernel.name, 30) : "module",
      );
      tab.addEventListener("click", () => this.open(page));
      return tab;
    });
    const strip = h("div", { class: "code-tabs", role: "tablist", "aria-label": "module and kernels" }, this.tabs);
    strip.addEventListener("keydown", (event) => {
      /** @type {Record<string, number>} */
      const next = { ArrowLeft: this.shown - 1, ArrowRight: this.shown + 1, Home: 0, End: this.tabs.length - 1 };
      if (!(event.key in next)) return;
      this.open((next[event.key] + this.tabs.length) % this.tabs.length);
      this.tabs[this.shown].focus();
      event.preventDefault();
    });
    return strip;
  }

  kernelList() {
    this.list = h(
      "select",
      { class: "code-list", "aria-label": "module or kernel" },
      h("option", { value: "0" }, "module"),
      h(
        "optgroup",
        { label: plural(this.data.kernels.length, "kernel") },
        this.data.kernels.map((kernel, i) => h("option", { value: String(i + 1) }, shortened(kernel.name, 70))),
      ),
    );
    const { list } = this;
    list.addEventListener("change", () => this.open(Number(list.value)));
    return h("div", { class: "code-tabs" }, list, this.litNames);
  }

  /** Tabs and names stand for their kernels; lines are the listing's. */
  listen() {
    /** @param {Event} event */
    const kernelUnder = (event) => {
      const target = event.target instanceof Element ? event.target : null;
      const stands = target?.closest(".listing") ? null : target?.closest("[data-item]");
      return stands instanceof HTMLElement ? Number(stands.dataset.item) : -1;
    };
    /** @param {number} item */
    const preview = (item) =>
      this.app.selection.preview(item < 0 ? [] : [item], item < 0 ? "" : this.app.model.name(item));
    let over = -1;
    this.element.addEventListener("pointerover", (event) => {
      const item = kernelUnder(event);
      if (item === over) return;
      over = item;
      if (item >= 0 || !(event.target instanceof Element && event.target.closest(".listing"))) preview(item);
    });
    this.element.addEventListener("pointerleave", () => {
      if (over >= 0) preview(-1);
      over = -1;
    });
    this.element.addEventListener("focusin", (event) => {
      const item = kernelUnder(event);
      if (item >= 0 && event.target instanceof Element && event.target.matches(":focus-visible")) preview(item);
    });
    this.element.addEventListener("focusout", (event) => {
      if (kernelUnder(event) >= 0 && over < 0) preview(-1);
    });
  }

  /**
   * The source and the machine code that a page shows.
   * @param {CodePage | undefined} [page]
   */
  listings(page = this.pages.get(this.shown)) {
    return [page?.listing, page?.forms?.listing].filter((listing) => !!listing);
  }

  text() {
    const kernel = this.data.kernels[this.shown - 1];
    return kernel ? (kernel.source?.text ?? kernel.name) : this.data.module.text;
  }

  /**
   * Shows the module or a kernel.
   * @param {number} number of the page
   */
  open(number) {
    if (number === this.shown) return;
    this.shown = number;
    let page = this.pages.get(number);
    if (page === undefined) {
      page = number === MODULE ? this.modulePage() : this.kernelPage(this.data.kernels[number - 1]);
      this.pages.set(number, page);
      page.listing?.mark(this.marks);
    }
    put(this.body, page.panel);
    this.listings().forEach((listing) => listing.resized());
    this.tabs.forEach((tab, i) => {
      tab.setAttribute("aria-selected", String(i === number));
      tab.tabIndex = i === number ? 0 : -1;
    });
    this.showTab();
    if (this.list) this.list.value = String(number);
    this.finder.search(false);
    this.paintNames();
  }

  /** Scrolls the tabs to the one that is shown. */
  showTab() {
    const tab = this.tabs[this.shown];
    const strip = tab?.parentElement;
    if (!strip) return;
    const right = tab.offsetLeft + tab.offsetWidth;
    if (tab.offsetLeft < strip.scrollLeft || right > strip.scrollLeft + strip.clientWidth)
      strip.scrollLeft = tab.offsetLeft - 40;
  }

  /** @returns {CodePage} */
  modulePage() {
    const { module, folds, kernels, device } = this.data;
    const listing = new Listing(this.app, {
      text: module,
      label: `generated module, ${this.data.phase}`,
      folds,
      coloured: true,
      tagged: true,
      ...moduleLinks(this.app, kernels),
    });
    const facts = [
      device ? `for ${device}` : "",
      plural(listing.lines.count, "line"),
      kernels.length ? "" : "launches no kernel",
    ];
    return {
      kernel: null,
      panel: this.panel("module", this.head(facts), listing.element),
      listing,
      name: null,
      forms: null,
    };
  }

  /**
   * @param {KernelData} kernel
   * @returns {CodePage}
   */
  kernelPage(kernel) {
    const head = kernelHead(this.app, kernel, (line) => this.goTo(line));
    const name = /** @type {HTMLElement} */ (head.querySelector(".kernel-name"));
    const stamp = this.head([]);
    if (!kernel.source) {
      return {
        kernel,
        panel: this.panel(kernel.name, stamp, head, h("p", { class: "listing-empty" }, kernel.sourceless)),
        listing: null,
        name,
        forms: null,
      };
    }
    const last = kernel.source.text.split("\n").length;
    const listing = new Listing(this.app, {
      text: kernel.source,
      label: `source of kernel ${shortened(kernel.name, 80)}`,
      first: kernel.first || 1,
      ranges: [{ first: 1, last, item: kernel.item, whole: kernel.whole }],
      folds: kernel.folds,
      coloured: true,
      tagged: true,
      ...kernelLinks(this.app, kernel, 0),
    });
    const both = h("div", { class: "code-both" }, listing.element);
    const forms = kernel.part ? new KernelForms(this.app, kernel, both, () => this.formed()) : null;
    return {
      kernel,
      panel: this.panel(kernel.name, stamp, head, ...(forms ? [forms.element] : []), both),
      listing,
      name,
      forms,
    };
  }

  /**
   * What became of the code, and what may differ on the device.
   * @param {string[]} facts
   */
  head(facts) {
    return h(
      "div",
      { class: "code-head" },
      [this.data.stamp, ...facts].filter(Boolean).join(" · "),
      remarkList(this.data.remarks),
    );
  }

  /** Another form of a kernel stands beside its source. */
  formed() {
    this.finder.search(false);
    // As if it had just been pinned.
    this.pin = null;
    this.mark(this.marks);
  }

  /**
   * @param {string} name
   * @param {...Node} children
   */
  panel(name, ...children) {
    return h(
      "div",
      { class: "code-panel", role: this.tabs.length ? "tabpanel" : "group", "aria-label": shortened(name, 80) },
      children,
    );
  }

  /**
   * Shows a line of the module and moves the focus to it.
   * @param {number} line counted from 1
   */
  goTo(line) {
    this.open(MODULE);
    this.pages.get(MODULE)?.listing?.goTo(line);
  }

  /** @param {Marks} marks */
  mark(marks) {
    this.marks = marks;
    for (const page of this.pages.values()) this.listings(page).forEach((listing) => listing.mark(marks));
    // What is pinned in the source comes into view beside it, and the other way round.
    const pin = this.app.selection.pins.at(-1);
    const page = this.pages.get(this.shown);
    if (pin !== this.pin && page?.forms) {
      const items = pin ? this.exact([...this.app.chain.through(pin.items)]) : [];
      page.forms.reveal(items);
      if (page.forms.listing) page.listing?.reveal(items);
    }
    this.pin = pin;
    this.data.kernels.forEach((kernel, i) => {
      const bits = marks.get(kernel.item) ?? 0;
      if (bits === this.kernelBits[i]) return;
      this.kernelBits[i] = bits;
      const tab = this.tabs[i + 1];
      if (tab) tab.className = `code-tab${litLineClass(bits)}`;
    });
    this.paintNames();
  }

  /** The name on the page of a kernel, and those of lit kernels beside the list. */
  paintNames() {
    const page = this.pages.get(this.shown);
    if (page?.name && page.kernel) {
      page.name.className = `kernel-name${litLineClass(this.kernelBits[this.shown - 1])}`;
      page.name.setAttribute("aria-pressed", String(this.app.selection.isPinned([page.kernel.item])));
    }
    if (!this.list) return;
    // Who is on one of these names should not lose it from under the pointer.
    if (!this.litNames.matches(":hover, :focus-within")) {
      const lit = [...this.kernelBits.keys()].filter((i) => this.kernelBits[i]);
      const more = lit.length - LIT_NAMED;
      put(
        this.litNames,
        lit.slice(0, LIT_NAMED).map((i) => this.litName(i)),
        more > 0 ? h("span", { class: "code-more" }, `and ${more} more lit`) : null,
      );
    }
    for (const made of this.litNames.querySelectorAll("button")) {
      made.className = `code-tab${litLineClass(this.kernelBits[Number(made.dataset.page) - 1])}`;
    }
  }

  /** @param {number} number of a kernel */
  litName(number) {
    const { name, item } = this.data.kernels[number];
    const made = button(shortened(name, 24), () => this.open(number + 1), { class: "code-tab" });
    made.title = name;
    made.dataset.item = String(item);
    made.dataset.page = String(number + 1);
    return made;
  }

  /** @param {number[]} items */
  reveal(items) {
    // A page that shows one of them stays: who reads one of two kernels should not be thrown to the other.
    const exact = this.exact(items);
    if (this.listings().filter((listing) => listing.reveal(exact)).length) return true;
    const item = exact.find((one) => this.kernelOf.has(one));
    if (item === undefined) return false;
    const page = (this.kernelOf.get(item) ?? 0) + 1;
    this.open(page);
    this.pages.get(page)?.listing?.reveal(exact);
    return true;
  }

  /**
   * The items, lines of kernels first: they say more than their kernel.
   * @param {number[]} items
   */
  exact(items) {
    const kernels = new Set(this.data.kernels.map((kernel) => kernel.item));
    return [...items.filter((item) => !kernels.has(item)), ...items.filter((item) => kernels.has(item))];
  }

  resized() {
    this.showTab();
    this.listings().forEach((listing) => listing.resized());
  }

  close() {
    this.finder.close();
    for (const page of this.pages.values()) this.listings(page).forEach((listing) => listing.close());
  }
}
