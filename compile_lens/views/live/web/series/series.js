// A series: captures that differ in one number, and a slider that chooses which is shown.

import { h, put } from "../dom.js";
import { CapturePage } from "../play/capture_page.js";

/** @import { Series } from "../types.d.ts" */

/**
 * @param {HTMLElement} host
 * @param {Record<string, string>} parts packed: what the series is, and the parts of each capture
 * @param {(packed: string) => Promise<string>} unpack
 * @param {boolean} standalone
 * @param {string} style
 */
export async function openSeries(host, parts, unpack, standalone, style) {
  /** @type {Series} */
  const { name, values } = JSON.parse(await unpack(parts.comparison));
  const page = new CapturePage(style, false);
  const value = h("output", {});
  const show = async () => {
    const number = Number(input.value);
    put(value, values[number]);
    input.setAttribute("aria-valuetext", values[number]);
    await page.show(JSON.parse(await unpack(parts[`column ${number}`])));
  };
  const input = h("input", {
    type: "range",
    min: "0",
    max: String(values.length - 1),
    value: "0",
    oninput: () => void show(),
  });
  const element = h(
    "div",
    { class: "play series" },
    h("div", { class: "settings" }, h("label", { class: "setting" }, name, input, value)),
    h("section", { class: "side-page", "aria-label": "capture" }, page.element),
  );
  return { element, begin: () => void show() };
}
