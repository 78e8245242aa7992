// A generated module and its kernels: the whole text, and each kernel by itself.

import { button, h, plural, put, shortened } from "../dom.js";
import { between } from "./between.js";
import { Finder, copyButton } from "./finder.js";
import { itemsInView } from "./in_view.js";
import { kernelHead, kernelLinks, moduleLinks, remarkList, signsOf } from "./kernel_facts.js";
import { KernelForms } from "./kernel_forms.js";
import { launchRow, markLaunch, mostJoined } from "./launches.js";
import { Listing } from "./listing.js";
import { litLineClass } from "./listing_block.js";
import { setLarge, setTidy, showFirst } from "./looks.js";

/** @import { App, Marks, Pin } from "../data/app.d.ts" */
/** @import { CodeData, KernelData } from "../types.d.ts" */

/** @typedef {{ kernel: KernelData | null, panel: HTMLElement, listing: Listing | null, name: HTMLElement | null, forms: KernelForms | null }} CodePage */

/** Rows that are shown in large letters, in a pane of so many pixels at least. */
const FEW_ROWS = 20;
const ROOMY = 540;

/** The module's page; kernel `i` has page `i + 1`. */
const MODULE = 0;

export class CodePane {
  /**
   * @param {App} app
   * @param {number} stage
   * @param {CodeData} data
   * @param {ReadonlyMap<number, string>} [own] items of lines that other targets lack, and their operators
   */
  constructor(app, stage, data, own = new Map()) {
    this.own = own;
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
    this.kernelBits = new Uint8Array(data.kernels.length);
    /** The pin that the machine code was brought to last. @type {Pin | null | undefined} */
    this.pin = app.selection.pins.at(-1);
    this.tidied = true;
    this.tidy = button("tidy", () => this.toggleTidy(), {
      label: "leave out casts of indices and long names; a copy is whole",
      class: "button code-tidy",
      pressed: true,
    });
    this.finder = new Finder(app, () => this.listings());
    /** @type {HTMLElement | null} */
    this.tools = h(
      "div",
      { class: "listing-tools" },
      this.finder.element,
      this.tidy,
      copyButton(app, () => this.text()),
    );
    /** @type {HTMLButtonElement[]} */
    this.tabs = [];
    this.body = h("div", { class: "code-body" });
    this.element = h("div", { class: "code-pane" }, this.kernelTabs(), this.body);
    this.listen();
    this.open(mostJoined(app.model.units, data.kernels));
  }

  kernelTabs() {
    const { kernels } = this.data;
    this.listed = kernels.length > 1;
    this.tabs = [null, ...kernels].map((kernel, page) => {
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
        kernel && this.listed
          ? launchRow(this.app.model.units, kernel, page)
          : h("span", { class: "code-name" }, kernel ? "kernel" : "module"),
      );
      tab.addEventListener("click", () => this.open(page));
      return tab;
    });
    const strip = h(
      "div",
      {
        class: this.listed ? "code-tabs code-launches" : "code-tabs",
        role: "tablist",
        "aria-label": "module and kernels",
        "aria-orientation": this.listed ? "vertical" : null,
      },
      this.tabs,
    );
    strip.addEventListener("keydown", (event) => {
      /** @type {Record<string, number>} */
      const next = {
        ArrowLeft: this.shown - 1,
        ArrowUp: this.shown - 1,
        ArrowRight: this.shown + 1,
        ArrowDown: this.shown + 1,
        Home: 0,
        End: this.tabs.length - 1,
      };
      if (!(event.key in next)) return;
      this.open((next[event.key] + this.tabs.length) % this.tabs.length);
      this.tabs[this.shown].focus();
      event.preventDefault();
    });
    return strip;
  }

  /** Shows code tidied, or as it is; copies are always whole. */
  toggleTidy() {
    this.tidied = !this.tidied;
    this.tidy.setAttribute("aria-pressed", String(this.tidied));
    for (const [number, { listing }] of this.pages) if (number !== MODULE && listing) setTidy(listing, this.tidied);
  }

  /** Large letters where few lines are shown and there is room. */
  fit() {
    const { listing, panel } = this.pages.get(this.shown) ?? {};
    if (!listing || !this.element.clientWidth) return;
    setLarge(listing, listing.folds.rows <= FEW_ROWS && this.element.clientWidth >= ROOMY);
    panel?.classList.toggle("code-long", listing.folds.rows > FEW_ROWS);
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

  /** The source and the machine code that a page shows. @param {CodePage | undefined} [page] */
  listings(page = this.pages.get(this.shown)) {
    return [page?.listing, page?.forms?.listing].filter((listing) => !!listing);
  }

  text() {
    const kernel = this.data.kernels[this.shown - 1];
    return kernel ? (kernel.source?.text ?? kernel.name) : this.data.module.text;
  }

  /** Shows the module or a kernel. @param {number} number of the page */
  open(number) {
    if (number === this.shown) return;
    this.shown = number;
    let page = this.pages.get(number);
    if (page === undefined) {
      page = number === MODULE ? this.modulePage() : this.kernelPage(this.data.kernels[number - 1]);
      this.pages.set(number, page);
      if (page.listing) setTidy(page.listing, this.tidied && number !== MODULE);
      page.listing?.mark(this.marks);
      put(this.body, page.panel);
      this.fit();
      if (number !== MODULE && page.listing) showFirst(page.listing);
    }
    put(this.body, page.panel);
    this.fit();
    this.listings().forEach((listing) => listing.resized());
    this.tabs.forEach((tab, i) => {
      tab.setAttribute("aria-selected", String(i === number));
      tab.tabIndex = i === number ? 0 : -1;
    });
    this.showTab();
    this.finder.search(false);
    this.paintNames();
  }

  /** Scrolls the tabs to the one that is shown. */
  showTab() {
    const tab = this.tabs[this.shown];
    const strip = tab?.parentElement;
    if (!strip) return;
    const bottom = tab.offsetTop + tab.offsetHeight;
    if (this.listed && (tab.offsetTop < strip.scrollTop || bottom > strip.scrollTop + strip.clientHeight))
      strip.scrollTop = tab.offsetTop - strip.clientHeight / 2;
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
    const title = /** @type {HTMLElement} */ (head.querySelector(".kernel-title"));
    // What there is to know of it stands below its lines.
    const foot = h("div", { class: "code-foot" }, between(this.app, this.stage), head, this.head([]));
    if (!kernel.source) {
      return {
        kernel,
        panel: this.panel(kernel.name, title, h("p", { class: "listing-empty" }, kernel.sourceless), foot),
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
      signs: signsOf(kernel, this.own),
      coloured: true,
      tagged: true,
      ...kernelLinks(this.app, kernel, 0),
    });
    const both = h("div", { class: "code-both" }, listing.element);
    const forms = kernel.part ? new KernelForms(this.app, kernel, both, () => this.formed()) : null;
    return {
      kernel,
      panel: this.panel(kernel.name, title, ...(forms ? [forms.element] : []), both, foot),
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
      if (bits === this.kernelBits[i] && !bits) return;
      this.kernelBits[i] = bits;
      const tab = this.tabs[i + 1];
      if (tab) markLaunch(tab, bits ? this.app.selection.units : null);
      if (tab) tab.className = `code-tab${litLineClass(bits)}`;
    });
    this.paintNames();
  }

  /** The name on the page of a kernel. */
  paintNames() {
    const page = this.pages.get(this.shown);
    if (page?.name && page.kernel) {
      page.name.className = `kernel-name${litLineClass(this.kernelBits[this.shown - 1])}`;
      page.name.setAttribute("aria-pressed", String(this.app.selection.isPinned([page.kernel.item])));
    }
  }

  /** Items of the lines of the code in view. */
  inView() {
    return this.listings().slice(0, 1).flatMap(itemsInView);
  }

  /** @param {number[]} items */
  reveal(items) {
    // A page that shows one of them stays.
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
    this.fit();
    this.listings().forEach((listing) => listing.resized());
  }

  close() {
    this.finder.close();
    for (const page of this.pages.values()) this.listings(page).forEach((listing) => listing.close());
  }
}
