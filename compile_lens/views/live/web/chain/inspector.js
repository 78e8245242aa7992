// The panel below the panes: what is pinned, what the record knows of it, and its chain as text.

import { factsInLine, factsOf, factsView } from "../data/facts.js";
import { Reach, labelOf } from "../data/reasons.js";
import { button, h, plural, put, shortened } from "../dom.js";
import { ChainList } from "./chain_list.js";
import { sharedItems } from "./chain_rows.js";

/** @import { App, Pin } from "../data/app.d.ts" */
/** @import { Facts } from "../data/facts.js" */

const INSPECTOR_HINT = "Hover to preview, click to pin, Esc clears.";

export class Inspector {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.open = true;
    /** Pins as last shown; new objects for new pins. @type {Pin[]} */
    this.pins = [];
    /** @type {Pin | null} */
    this.focused = null;
    /** The pin whose facts and chain the body holds. @type {Pin | null} */
    this.shown = null;
    /** Chains of the pins, walked once each. @type {Map<Pin, Reach>} */
    this.reaches = new Map();
    /** Counts what is asked for, so that an answer that comes late is dropped. */
    this.asked = 0;
    this.previewed = 0;
    this.toggle = button("", () => this.setOpen(!this.open), { class: "inspector-toggle" });
    this.chips = h("div", { class: "inspector-chips", role: "group", "aria-label": "Pins" });
    this.hover = h("div", { class: "inspector-hover", dir: "auto" }, INSPECTOR_HINT);
    this.clear = button("Clear (Esc)", () => this.clearAll(), { class: "button inspector-clear" });
    this.shared = h("div", { class: "inspector-shared", dir: "auto" });
    this.facts = h("div", { class: "inspector-facts" });
    this.chain = new ChainList(app);
    this.body = h(
      "div",
      { class: "inspector-body" },
      this.shared,
      h("div", { class: "inspector-columns" }, this.facts, this.chain.element),
    );
    const head = h("div", { class: "inspector-head" }, this.toggle, this.chips, this.hover, this.clear);
    this.element = h("section", { class: "inspector", "aria-label": "What is pinned" }, head, this.body);
    this.listen();
    this.setOpen(true);
    this.showPins();
    this.showHover();
  }

  listen() {
    const { selection } = this.app;
    /** @param {Event} event */
    const over = (event) => {
      const pin = this.pinAt(event.target);
      if (pin) selection.preview(pin.items, pin.name, this.chips);
      else selection.preview([]);
    };
    this.chips.addEventListener("pointerover", over);
    this.chips.addEventListener("focusin", over);
    this.chips.addEventListener("pointerleave", () => selection.preview([]));
    this.chips.addEventListener("focusout", (event) => selection.left(event, this.chips));
    this.chips.addEventListener("click", (event) => {
      const pin = this.pinAt(event.target);
      if (!pin || !(event.target instanceof Element)) return;
      if (event.target.closest(".chip-unpin")) this.unpin(pin);
      else this.focus(pin);
    });
  }

  /**
   * Brings the part of the chain that is in a stage into view.
   * @param {number} stage
   */
  showStage(stage) {
    this.update();
    if (!this.open) this.setOpen(true);
    this.chain.showStage(stage);
  }

  /** @param {EventTarget | null} target */
  pinAt(target) {
    const chip = target instanceof Element ? target.closest("[data-pin]") : null;
    return chip ? this.pins[Number(chip.getAttribute("data-pin"))] : undefined;
  }

  /** Shows the selection as it is now. Quick where only the preview changed. */
  update() {
    const { pins } = this.app.selection;
    if (pins.length !== this.pins.length || pins.some((pin, i) => pin !== this.pins[i])) this.showPins();
    this.showHover();
  }

  /** @param {boolean} open */
  setOpen(open) {
    this.open = open;
    this.toggle.textContent = open ? "▾ Pinned" : "▸ Pinned";
    this.toggle.setAttribute("aria-expanded", String(open));
    this.element.classList.toggle("inspector-closed", !open);
    this.showBody();
  }

  showPins() {
    const { pins } = this.app.selection;
    const added = pins.filter((pin) => !this.pins.includes(pin));
    this.pins = [...pins];
    this.reaches = new Map(
      pins.map((pin) => [pin, this.reaches.get(pin) ?? new Reach(this.app.model, this.app.chain, pin.items)]),
    );
    const focused = this.focused && pins.includes(this.focused) ? this.focused : (pins[pins.length - 1] ?? null);
    this.focused = added[added.length - 1] ?? focused;
    put(this.chips, ...this.pins.map((pin, number) => this.chip(pin, number)));
    this.clear.hidden = pins.length === 0;
    this.toggle.hidden = pins.length === 0;
    this.element.classList.toggle("inspector-empty", pins.length === 0);
    this.showFocused();
    if (added.length === 1) this.app.say(this.spoken(added[0]));
  }

  /** @param {Pin} pin @param {number} number */
  chip(pin, number) {
    const { model } = this.app;
    const name = shortened(this.nameOf(pin), 80);
    const where = model.stageTitle(model.stageOf(pin.items[0]));
    const show = h(
      "button",
      { type: "button", class: "chip-show", title: `${shortened(this.nameOf(pin), 300)}, ${where}` },
      h("bdi", { class: "chip-name" }, name),
      h("span", { class: "chip-where" }, where),
    );
    const unpin = button("×", () => undefined, { class: "chip-unpin", label: `Unpin ${name}` });
    return h("span", { class: "chip", "data-pin": number }, show, unpin);
  }

  /** A Python line goes by its file's name alone. @param {Pin} pin */
  nameOf(pin) {
    const { model } = this.app;
    return pin.items.length === 1 && pin.name === model.name(pin.items[0]) ? labelOf(model, pin.items[0]) : pin.name;
  }

  /** @param {Pin} pin */
  spoken(pin) {
    const reach = this.reaches.get(pin);
    const where = this.app.model.stageTitle(this.app.model.stageOf(pin.items[0]));
    const linked = reach ? reach.all.size - reach.own.length : 0;
    return `Pinned ${shortened(this.nameOf(pin), 80)} in ${where}: ${plural(linked, "linked item")} in ${plural(reach ? reach.stages.size : 0, "stage")}`;
  }

  /** @param {Pin} pin */
  focus(pin) {
    this.focused = pin;
    if (!this.open) this.setOpen(true);
    this.showFocused();
  }

  /** @param {Pin} pin */
  unpin(pin) {
    const number = this.pins.indexOf(pin);
    this.app.selection.preview([]);
    this.app.selection.toggle(pin.items, pin.name);
    if (this.app.selection.pins.length !== this.pins.length) this.update();
    this.focusChip(number);
  }

  clearAll() {
    this.app.selection.clear();
    this.update();
    this.app.say("pins cleared");
    this.focusChip(0);
  }

  /** The button that was pressed is gone: the next chip takes the focus, or the panel. @param {number} number */
  focusChip(number) {
    const chips = this.chips.querySelectorAll(".chip-show");
    const next = /** @type {HTMLElement | undefined} */ (chips[Math.min(number, chips.length - 1)]);
    if (next) next.focus();
    else {
      this.element.setAttribute("tabindex", "-1");
      this.element.focus();
    }
  }

  showFocused() {
    this.chips.querySelectorAll("[data-pin]").forEach((chip, number) => {
      const current = this.pins[number] === this.focused;
      chip.classList.toggle("chip-focused", current);
      chip.querySelector(".chip-show")?.setAttribute("aria-pressed", String(current));
    });
    this.shown = null;
    this.showBody();
  }

  /** Fills the body, once it is open. */
  showBody() {
    this.body.hidden = !this.open || this.pins.length === 0;
    const pin = this.focused;
    const reach = pin && this.reaches.get(pin);
    if (this.body.hidden || !pin || !reach || this.shown === pin) return;
    this.shown = pin;
    this.chain.show(pin, reach);
    this.showShared();
    const request = ++this.asked;
    factsOf(this.app.model, pin.items, this.nameOf(pin)).then(
      (facts) => {
        if (request === this.asked) put(this.facts, factsView(facts, pin.colour));
        this.chain.readLoaded();
      },
      (error) => {
        if (request === this.asked)
          put(
            this.facts,
            h("div", { class: "inspector-failed", role: "alert" }, `These facts could not be read: ${error}`),
          );
      },
    );
  }

  showShared() {
    const { model } = this.app;
    const reaches = this.pins.flatMap((pin) => this.reaches.get(pin) ?? []);
    this.shared.hidden = reaches.length < 2;
    if (this.shared.hidden) return;
    const common = sharedItems(model, reaches);
    const who = this.pins.length === 2 ? "Both chains" : `All ${this.pins.length} chains`;
    const parts = common.map(([stage, items]) => {
      const first = shortened(labelOf(model, items[0]), 48);
      return `${model.stageTitle(stage)}: ${items.length > 1 ? `${first} +${items.length - 1}` : first}`;
    });
    const nothing =
      this.pins.length === 2 ? "The two chains share nothing." : `No item is in all ${this.pins.length} chains.`;
    put(this.shared, common.length ? [h("b", {}, `${who} hold `), parts.join(" · ")] : nothing);
  }

  /** One line on what the pointer or the focus is on. Parts of the data are not read for it. */
  showHover() {
    const { model, selection } = this.app;
    const items = selection.hovered;
    const request = ++this.previewed;
    if (items.length === 0) {
      this.hover.textContent = this.pins.length ? "" : INSPECTOR_HINT;
      return;
    }
    const stage = model.stageOf(items[0]);
    const name = shortened(
      items.length === 1 ? labelOf(model, items[0]) : selection.hoveredName || plural(items.length, "item"),
      80,
    );
    const kind = items.length === 1 ? model.kind(items[0]) : plural(items.length, "item");
    const plain = [name, model.stageTitle(stage), kind].join(" · ");
    this.hover.textContent = plain;
    const { part } = model.index.stages[stage];
    if (part && !model.payload.read.has(part)) return;
    /** @param {Facts} facts */
    const late = (facts) => {
      if (request === this.previewed) this.hover.textContent = factsInLine(facts);
    };
    // A part that cannot be read is told by the pane that shows it; the plain words stay.
    factsOf(model, items, selection.hoveredName).then(late, () => undefined);
  }
}
