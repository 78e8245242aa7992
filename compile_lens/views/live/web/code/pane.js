// A generated module and its kernels: the whole text, and each kernel by itself.

import { additions } from "./additions.js";
import { button, h, plural, put, shortened } from "../dom.js";
import { between } from "./story_notes.js";
import { Finder, copyButton } from "../listing/finder.js";
import { FoundNames } from "./name_matches.js";
import { itemsInView } from "../listing/visible_lines.js";
import { kernelHead, kernelLinks, moduleLinks, remarkList, signsOf } from "./kernel_facts.js";
import { KernelForms } from "./machine_code.js";
import { standForKernels } from "./kernel_names.js";
import { Listing } from "../listing/listing.js";
import { litLineClass } from "../listing/listing_block.js";
import { paperCode } from "../listing/print_rows.js";
import { setLarge, setTidy, setTight, showFirst } from "../listing/display.js";

/** @import { Own } from "./kernel_facts.js" */
/** @import { App, Marks, Pin } from "../data/app.d.ts" */
/** @import { CodeData, KernelData } from "../types.d.ts" */

/** @typedef {{ kernel: KernelData | null, panel: HTMLElement, listing: Listing | null, name: HTMLElement | null, forms: KernelForms | null }} CodePage */

/** Rows that are shown in large letters, in a pane of so many pixels at least. */
const [FEW_ROWS, ROOMY] = [20, 540];
/** Rows of the list that are in view together. */
const NEAR = 8;
/** The module's page; kernel `i` has page `i + 1`. */
const MODULE = 0;

export class CodePane {
  /**
   * @param {App} app
   * @param {number} stage
   * @param {CodeData} data
   * @param {Own} [own] lines that the others lack
   * @param {(page: "kernel" | "module") => void} [turned] is told what is shown instead of the other
   * @param {number} [listed] kernels from which on there is a list of them
   */
  constructor(app, stage, data, own = new Map(), turned = () => undefined, listed = 2) {
    this.own = own;
    this.turned = turned;
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
    this.kernelBits = new Uint16Array(data.kernels.length);
    /** The pin that the machine code was brought to last. @type {Pin | null | undefined} */
    this.pin = app.selection.pins.at(-1);
    this.tidied = true;
    this.tidy = button("tidy", () => this.toggleTidy(), {
      label: "leave out casts of indices and long names; a copy is whole",
      class: "button code-tidy",
      pressed: true,
    });
    this.finder = new Finder(app, () => this.listings(), new FoundNames(this));
    /** @type {HTMLElement | null} */
    this.tools = h(
      "div",
      { class: "listing-tools" },
      this.finder.element,
      this.tidy,
      copyButton(app, () => this.text()),
    );
    /** The kernel that is shown, or was before the module. */
    const { units, core } = app.model;
    const { lists } = additions;
    const many = lists && data.kernels.length >= listed;
    // Beside those of another capture they stand in the order of launches.
    const ranked = many && listed > 1 ? core.cost : null;
    const alone = { page: Number(!!data.kernels[0]?.source), why: "" };
    this.first = lists?.mostJoined(units, data.kernels, !!ranked) ?? alone;
    this.kernel = this.first.page || (data.kernels.length ? 1 : MODULE);
    const [only] = data.kernels.length === 1 && listed > 1 ? data.kernels : [];
    this.heads = [
      this.headTab("kernel", "code-kernels", only?.item),
      this.headTab("module", "code-module", undefined, "the whole module"),
    ];
    this.heads[0].hidden = data.kernels.length === 0;
    const list = many ? lists.launchList(units, data.kernels, (page) => this.choose(page), ranked) : null;
    /** Rows of the kernels, where there are several. @type {HTMLButtonElement[]} */
    this.tabs = list?.tabs ?? [];
    list?.element.addEventListener("pointerleave", () => this.showTab());
    this.body = h("div", { class: "code-body" });
    this.answer = list?.answer;
    this.element = h("div", { class: "code-pane" }, list?.elements ?? [], this.body);
    standForKernels(app, this.element);
    this.open(this.first.page);
  }

  /** Buttons that lead to the kernels and to the module, for the head of the pane. */
  pageTabs() {
    return this.heads;
  }

  /** @param {"kernel" | "module"} page */
  turn(page) {
    this.open(page === "module" ? MODULE : this.kernel);
  }

  /**
   * @param {"kernel" | "module"} page
   * @param {string} name of its class
   * @param {number | undefined} item of the only kernel
   * @param {string} [title]
   */
  headTab(page, name, item, title) {
    return h(
      "button",
      { type: "button", class: `frame-tab ${name}`, title, "data-item": item, onclick: () => this.turn(page) },
      page,
    );
  }

  /** Shows code tidied, or as it is; copies are always whole. */
  toggleTidy() {
    this.tidied = !this.tidied;
    this.tidy.setAttribute("aria-pressed", String(this.tidied));
    for (const [number, { listing }] of this.pages) if (number !== MODULE && listing) setTidy(listing, this.tidied);
  }

  fit() {
    const page = this.pages.get(this.shown);
    if (!page?.listing || !this.enlarge(page)) return;
    setTight(page.listing, page.panel);
  }

  /** Large letters where few lines are shown and there is room; whether there is any. @param {CodePage} page */
  enlarge({ listing }) {
    const { clientWidth } = this.element;
    if (listing && clientWidth) setLarge(listing, listing.folds.rows <= FEW_ROWS && clientWidth >= ROOMY, clientWidth);
    return clientWidth > 0;
  }

  /** The source and the machine code that a page shows. @param {CodePage | undefined} [page] */
  listings(page = this.pages.get(this.shown)) {
    return [page?.listing, page?.forms?.listing].filter((listing) => !!listing);
  }

  text() {
    const kernel = this.data.kernels[this.shown - 1];
    return kernel ? (kernel.source?.text ?? kernel.name) : this.data.module.text;
  }

  /** Shows a kernel, and what it came from in the panes beside. @param {number} page */
  choose(page) {
    this.open(page);
    this.app.beside(this.stage, [this.data.kernels[page - 1].item]);
  }

  /** Shows the module or a kernel. @param {number} number of the page */
  open(number) {
    if (number === this.shown) return;
    const begun = this.shown >= 0;
    const other = (number === MODULE) !== (this.shown === MODULE);
    this.shown = number;
    if (number !== MODULE) this.kernel = number;
    let page = this.pages.get(number);
    let fresh = false;
    if (page === undefined) {
      page = number === MODULE ? this.modulePage() : this.kernelPage(this.data.kernels[number - 1]);
      this.pages.set(number, page);
      if (page.listing) setTidy(page.listing, this.tidied && number !== MODULE);
      page.listing?.mark(this.marks);
      fresh = true;
    }
    // Measured before anything is written, so that the page is laid out once.
    const roomy = this.enlarge(page);
    put(this.body, page.panel);
    if (roomy && page.listing) setTight(page.listing, page.panel);
    if (fresh && (number !== MODULE || !begun) && page.listing) showFirst(page.listing);
    this.listings().forEach((listing) => listing.resized());
    this.tabs.forEach((tab, i) => {
      tab.setAttribute("aria-selected", String(i + 1 === number));
      tab.tabIndex = i + 1 === this.kernel ? 0 : -1;
    });
    this.tidy.hidden = number === MODULE;
    this.heads.forEach((head, i) => head.setAttribute("aria-pressed", String((i === 1) === (number === MODULE))));
    this.answer?.show(number - 1);
    this.showTab();
    this.finder.search(false);
    this.paintNames();
    if (begun && other) this.turned(number === MODULE ? "module" : "kernel");
  }

  /**
   * Scrolls the tabs no further than to the one of a page: the others before it tell what came first. A ranked list opens
   * at its top.
   * @param {number} [number] of the page, the one that is shown without
   */
  showTab(number = this.pages.size > 1 || !this.answer ? this.shown : MODULE) {
    const tab = this.tabs[number - 1];
    const strip = tab?.parentElement;
    // What is below the pointer stays there: the row that came there would be lit.
    if (!strip || strip.matches(":hover")) return;
    const least = tab.offsetTop + 1.5 * tab.offsetHeight - strip.clientHeight;
    strip.scrollTop = Math.max(least, Math.min(strip.scrollTop, tab.offsetTop - tab.offsetHeight / 2));
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

  /** What became of the code, and what may differ on the device. @param {string[]} facts */
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
      const items = pin ? this.exact([...this.app.chain.own(pin.items)]) : [];
      page.forms.reveal(items);
      if (page.forms.listing) page.listing?.reveal(items);
    }
    this.pin = pin;
    this.data.kernels.forEach((kernel, i) => {
      const bits = marks.get(kernel.item) ?? 0;
      if (bits === this.kernelBits[i] && !bits) return;
      this.kernelBits[i] = bits;
      const tab = this.tabs[i];
      if (tab) additions.lists?.markLaunch(tab, bits ? this.app.selection.units : null);
      if (tab) tab.className = `code-tab${litLineClass(bits)}`;
      else this.heads[0].className = `frame-tab code-kernels${litLineClass(bits)}`;
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

  /** Items of the lines of the code that are seen, and what of each is not. */
  inView() {
    return this.listings().slice(0, 1).flatMap(itemsInView);
  }

  /** @param {number[]} items */
  reveal(items) {
    // A page that shows one of them stays, if that is not far from the first; the head of a kernel, which is folded, says less than any of its lines.
    const exact = this.exact(items);
    const heads = new Set(this.data.kernels.map((kernel) => kernel.item));
    const lines = this.shown === MODULE ? exact : exact.filter((item) => !heads.has(item));
    const kernel = this.kernelOf.get(exact.find((one) => this.kernelOf.has(one)) ?? -1);
    const near = this.shown === MODULE || kernel === undefined || this.shown - kernel <= NEAR;
    if (near && this.listings().filter((listing) => listing.reveal(lines)).length) {
      if (this.shown !== MODULE) this.showTab((kernel ?? 0) + 1);
      this.showTab();
      return true;
    }
    if (kernel === undefined) return false;
    this.open(kernel + 1);
    this.pages.get(kernel + 1)?.listing?.reveal(exact.filter((one) => !heads.has(one)));
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

  paper() {
    const { panel, kernel = null } = this.pages.get(this.shown) ?? {};
    return paperCode(this.element, panel, kernel, this.data.kernels.length - 1, this.listings());
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
