// The controls of a graph: which graph, which form, open and close, neighbours, search, zoom.

import { button, h, put } from "../dom.js";

/**
 * @typedef {object} GraphCommands
 * @property {(scene: number) => void} scene
 * @property {() => void} form
 * @property {() => void} open
 * @property {() => void} close
 * @property {() => void} neighbours
 * @property {(direction: number) => void} zoom
 * @property {() => void} actual
 * @property {() => void} fit
 * @property {(wanted: boolean) => void} kinds
 * @property {(wanted: boolean) => void} map
 */

export class GraphTools {
  /**
   * @param {string[]} scenes
   * @param {GraphCommands} commands
   * @param {HTMLElement} search
   */
  constructor(scenes, commands, search) {
    this.scenes = h(
      "select",
      { class: "graph-scene", "aria-label": "which graph", hidden: scenes.length < 2 },
      scenes.map((name, i) => h("option", { value: i }, name.slice(0, 80))),
    );
    this.scenes.addEventListener("change", () => commands.scene(Number(this.scenes.value)));
    this.form = button("modules", commands.form, { label: "one box for each module", pressed: false });
    this.open = button("open level", commands.open, { label: "open every closed box, one level" });
    this.close = button("close all", commands.close, { label: "close every open box" });
    this.neighbours = button("neighbours", commands.neighbours, {
      label: "show only what is around the node that was focused or pinned last (n)",
    });
    this.actual = button("100%", commands.actual, { label: "100%: actual size", class: "button graph-scale" });
    this.map = button("map", () => this.toggleMap(commands), {
      label: "keep the map of a large drawing",
      pressed: false,
    });
    this.kinds = button("kinds", () => commands.kinds(toggled(this.kinds)), {
      label: "colours for kinds of operators, not for Python lines",
      pressed: false,
    });
    this.element = h(
      "div",
      { class: "graph-tools", role: "group", "aria-label": "graph" },
      this.scenes,
      h(
        "span",
        { class: "graph-group graph-zoom" },
        button("−", () => commands.zoom(-1), { label: "zoom out (-)" }),
        this.actual,
        button("+", () => commands.zoom(1), { label: "zoom in (+)" }),
        button("fit", commands.fit, { label: "fit the whole drawing (0)" }),
      ),
      this.form,
      h("span", { class: "graph-group" }, this.open, this.close),
      this.neighbours,
      this.kinds,
      this.map,
      search,
    );
  }

  /** @param {GraphCommands} commands */
  toggleMap(commands) {
    commands.map(toggled(this.map));
  }

  /**
   * @param {{ scene: number, forms: boolean, folded: boolean, closable: boolean, openable: boolean }} state `forms`
   *   says whether there are two
   */
  update({ scene, forms, folded, closable, openable }) {
    this.scenes.value = String(scene);
    this.form.hidden = !forms;
    this.form.setAttribute("aria-pressed", String(folded));
    this.open.hidden = this.close.hidden = !closable && !openable;
    this.open.disabled = !openable;
    this.close.disabled = !closable;
  }

  /**
   * @param {number} scale
   * @param {boolean} map whether a map is of use
   */
  scaled(scale, map) {
    const text = `${Math.round(scale * 100)}%`;
    if (this.actual.textContent !== text) {
      put(this.actual, text);
      this.actual.setAttribute("aria-label", `${text}: actual size`);
    }
    this.map.disabled = !map;
  }
}

/**
 * Presses a button or releases it; whether it is pressed then.
 * @param {HTMLButtonElement} control
 */
function toggled(control) {
  const pressed = control.getAttribute("aria-pressed") !== "true";
  control.setAttribute("aria-pressed", String(pressed));
  return pressed;
}
