// The settings below the head of the playground: what the program is captured with.

import { h, put } from "../dom.js";
import { Popover } from "../controls/popover.js";

/** @import { PlayAnswer, PlayOffer, PlaySettings } from "./play.d.ts" */

/** Names of dtypes that the menu says otherwise. */
const AS_WRITTEN = "as written";

export class Controls {
  /**
   * @param {PlayOffer} offer
   * @param {PlaySettings} settings
   * @param {() => void} changed
   */
  constructor(offer, settings, changed) {
    this.changed = changed;
    this.settings = { ...settings };
    this.target = this.choice("target", "target", offer.targets);
    this.beside = this.choice("beside", "beside", offer.beside);
    this.dtype = this.choice(
      "dtype",
      "dtype",
      offer.dtypes.map((one) => [one, one || AS_WRITTEN]),
    );
    this.torch = this.choice("torch", "torch", offer.torches);
    this.function = this.choice("function", "function", [["", "f, or the last"]]);
    this.sizes = offer.sizes.map(([key, name]) => this.size(key, name, offer.largest));
    this.dynamic = this.box("dynamic", "dynamic");
    this.grad = this.box("requires_grad", "requires_grad");
    this.switches = h("fieldset", { class: "switches" });
    this.opener = h("button", { type: "button", class: "button" }, "options");
    this.popover = new Popover(this.opener, this.switches, { name: "options of the compiler" });
    this.element = h(
      "div",
      { class: "settings", role: "group", "aria-label": "Settings" },
      this.function.label,
      this.target.label,
      this.beside.label,
      this.dtype.label,
      this.torch.label,
      this.sizes.map(({ label }) => label),
      this.dynamic.label,
      this.grad.label,
      this.opener,
    );
    // A narrow page scrolls the row, and a browser leaves what is half in view as it is.
    this.element.addEventListener("focusin", ({ target }) =>
      /** @type {Element} */ (target).scrollIntoView({ block: "nearest", inline: "nearest" }),
    );
    /** Meanings of the switches by name. @type {Record<string, string>} */
    this.meanings = {};
    this.fill();
  }

  /** @param {Partial<PlaySettings>} some */
  set(some) {
    Object.assign(this.settings, some);
    this.changed();
  }

  /**
   * @param {"target" | "beside" | "dtype" | "torch" | "function"} key
   * @param {string} name
   * @param {[string, string][]} options value and words
   */
  choice(key, name, options) {
    const input = h("select", { onchange: () => this.set({ [key]: input.value }) });
    const offer = (/** @type {[string, string][]} */ offered) => {
      options = offered;
      const known = offered.some(([value]) => value === this.settings[key]);
      const all = known ? offered : [...offered, [this.settings[key], this.settings[key]]];
      put(
        input,
        all.map(([value, words]) => h("option", { value }, words)),
      );
      input.value = this.settings[key];
    };
    const show = () => offer(options);
    show();
    return { input, offer, show, label: h("label", { class: "setting" }, name, input) };
  }

  /**
   * A size that moves in steps of an eighth and more, so that one gesture goes from 1 to thousands.
   * @param {string} key
   * @param {string} name
   * @param {number} largest
   */
  size(key, name, largest) {
    const value = h("output", {});
    const steps = [...sizes(largest)];
    const input = h("input", {
      type: "range",
      min: "0",
      max: String(steps.length - 1),
      oninput: () => {
        this.set({ [key]: steps[Number(input.value)] });
        show();
      },
    });
    const show = () => {
      const number = Number(this.settings[key]);
      const at = steps.findIndex((step) => step >= number);
      input.value = String(at < 0 ? steps.length - 1 : at);
      input.setAttribute("aria-valuetext", String(number));
      put(value, String(number));
    };
    return { input, show, label: h("label", { class: "setting" }, name, input, value) };
  }

  /**
   * @param {"dynamic" | "requires_grad"} key
   * @param {string} name
   */
  box(key, name) {
    const input = h("input", { type: "checkbox", onchange: () => this.set({ [key]: input.checked }) });
    return { input, label: h("label", { class: "setting" }, input, name) };
  }

  /** Shows other settings. @param {PlaySettings} settings */
  take(settings) {
    Object.assign(this.settings, settings);
    this.fill();
  }

  fill() {
    const { settings } = this;
    // A link may name what the menus lack.
    const { target, beside, dtype, torch, sizes } = this;
    for (const control of [target, beside, dtype, torch, this.function, ...sizes]) control.show();
    torch.label.hidden = torch.input.options.length < 2;
    this.dynamic.input.checked = settings.dynamic;
    this.grad.input.checked = settings.requires_grad;
    this.showSwitches();
  }

  /** What a capture said of the program: its functions, whether it makes its inputs, which switches there are. */
  hear(/** @type {PlayAnswer} */ { functions = [], function: name = "", own_inputs: own = false, switches = {} }) {
    const others = functions.map((one) => /** @type {[string, string]} */ ([one, one]));
    this.function.offer([["", name ? `${name} (usual)` : "f, or the last"], ...others]);
    this.function.label.hidden = functions.length < 2;
    for (const { input, label } of this.sizes) {
      input.disabled = own;
      label.hidden = own;
    }
    if (Object.keys(switches).join() === Object.keys(this.meanings).join()) return;
    this.meanings = switches;
    this.showSwitches();
  }

  showSwitches() {
    const { switches } = this.settings;
    this.opener.textContent = switches.length ? `options (${switches.length})` : "options";
    const names = Object.keys(this.meanings);
    put(
      this.switches,
      h("legend", {}, "Each changes one default of Inductor"),
      names.map((name) => {
        const input = h("input", { type: "checkbox", onchange: () => this.flip(name, input.checked) });
        input.checked = switches.includes(name);
        return h("label", { class: "switch" }, input, h("code", {}, name), h("span", {}, this.meanings[name]));
      }),
      names.length ? null : h("p", {}, "They come with the first capture."),
    );
  }

  /**
   * @param {string} name
   * @param {boolean} on
   */
  flip(name, on) {
    const others = this.settings.switches.filter((one) => one !== name);
    const switches = on ? [...others, name] : others;
    this.opener.textContent = switches.length ? `options (${switches.length})` : "options";
    this.set({ switches });
  }
}

/** 1, 2, 3, … 8, then eight steps to each doubling. @param {number} largest */
function* sizes(largest) {
  for (let size = 1; size < largest; size += Math.max(1, 2 ** (Math.floor(Math.log2(size)) - 3))) yield size;
  yield largest;
}
