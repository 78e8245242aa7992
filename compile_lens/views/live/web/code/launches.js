// A kernel in the list of launches: the bar of the lines that it joins, its name, how often and what for.

import { lookOf } from "../data/units.js";
import { answerStrip } from "./answer.js";
import { h, meaning } from "../dom.js";

/** @import { Units } from "../data/units.js" */
/** @import { CoreCost, KernelCost, KernelData } from "../types.d.ts" */

/** Characters that a bar has room for. */
const CHARACTERS = 20;
/** Parts of a bar; the rest is only counted. */
const MOST_PARTS = 6;

/**
 * @param {Units} units
 * @param {KernelData} kernel
 * @param {number} number in the list
 * @param {KernelCost | null} [cost] where the list is ranked
 */
export function launchRow(units, kernel, number, cost = null) {
  const own = units.of(kernel.item);
  const shown = own.slice(0, own.length > MOST_PARTS ? MOST_PARTS - 1 : MOST_PARTS);
  const room = Math.floor(CHARACTERS / shown.length);
  const parts = shown.map((unit) => {
    const { tag } = units.all[unit];
    const word = partName(tag, Math.max(5, room));
    return h("span", { class: `part ${lookOf(units.all[unit])}`, "data-part": unit, "data-tag": word, title: tag });
  });
  if (own.length > shown.length)
    parts.push(h("span", { class: "part part-more", "data-tag": `+${own.length - shown.length}` }));
  return [
    h("span", { class: "launch-number" }, String(cost?.order ?? number)),
    h("span", { class: "launch-bar" }, parts),
    h(
      "span",
      { class: "code-name" },
      kernel.name.replace(/^(cpp|triton_\w{3}|mps)_fused_(?=\D)|^extern_kernels\./, ""),
    ),
    h("span", { class: "launch-times" }, cost?.launched ?? (kernel.launches === 1 ? "" : kernel.launched)),
    h("span", { class: "launch-kind" }, cost?.limit || (kernel.language === "extern" ? "library" : kernel.kind)),
    h("span", { class: "launch-bytes" }, cost?.amount ?? kernel.traffic),
    cost ? h("span", { class: "launch-share", style: `--share:${cost.bar}` }, cost.words) : null,
  ];
}

/**
 * A name in so many characters: of a line without room for its file the number is whole, and so is that of a call.
 * @param {string} tag
 * @param {number} room
 */
export function partName(tag, room) {
  if (tag.length <= room) return tag;
  const line = /:(\d+)$/.exec(tag)?.[1];
  const short = line ?? tag.replaceAll("_", "");
  if (line || short.length <= room) return short;
  const [number] = /\d*$/.exec(short) ?? [""];
  return `${short.slice(0, Math.max(2, room - 1 - number.length))}…${number}`;
}

/**
 * Keeps only the colours of lit units in a launch that is lit.
 * @param {HTMLElement} tab
 * @param {ReadonlySet<number> | null} lit null for all
 */
export function markLaunch(tab, lit) {
  for (const part of tab.querySelectorAll("[data-part]"))
    part.classList.toggle("off", lit !== null && !lit.has(Number(part.getAttribute("data-part"))));
}

/** Launches that a story begins with, about as many as a layer has; rows of a ranked list that are in view together. */
const [BEGINNING, TOP] = [12, 7];

/**
 * Numbers of the kernels, counted from 0; if they are ranked, what costs most first.
 * @param {KernelData[]} kernels
 * @param {boolean} ranked
 */
function ranking(kernels, ranked) {
  const bar = (/** @type {number} */ i) => (ranked ? (kernels[i].cost?.bar ?? -1) : 0);
  return [...kernels.keys()].sort((a, b) => bar(b) - bar(a));
}

/**
 * The kernel to begin with, counted from 1, and why: of the first rows of a ranked list the one whose remedy could save most;
 * else the one that joins the most lines or calls among those that cost most, or that are launched first, else the first
 * that has a source; 0 where none has one.
 * @param {Units} units
 * @param {KernelData[]} kernels
 * @param {boolean} ranked
 */
export function mostJoined(units, kernels, ranked) {
  const order = ranking(kernels, ranked).filter((i) => !ranked || (kernels[i].cost?.row ?? i) === i);
  const top = ranked ? order.slice(0, TOP) : [];
  const saved = top.map((i) => (kernels[i].source && kernels[i].cost?.saved) || 0);
  const best = top[saved.indexOf(Math.max(1, ...saved))];
  if (best !== undefined) return { page: best + 1, why: "none in view with a source could save more" };
  const joined = order.map((i) => (kernels[i].source ? units.of(kernels[i].item).length : -1));
  const few = ranked ? TOP : BEGINNING;
  const most = Math.max(-1, ...joined.slice(0, few));
  const page = (order[joined.findIndex((count) => (most < 0 ? count >= 0 : count === most))] ?? -1) + 1;
  const rest = order.length > few ? (ranked ? `${few} that cost most` : `first ${few}`) : "others";
  const own = most > 0 ? units.of(kernels[page - 1].item) : [];
  const what = own.every((unit) => /^(.+:)?\d+$/.test(units.all[unit].tag)) ? "lines" : "calls";
  const why = most > 0 ? `none of the ${rest} joins more ${what}` : "the first with a source";
  return { page, why: kernels.length > 1 ? why : "" };
}

/**
 * The kernels below each other, a tab each; page `i + 1` is that of kernel `i`. They are ranked by cost, or stand in the
 * order of launches. Of equal library calls only the first has a row.
 * @param {Units} units
 * @param {KernelData[]} kernels
 * @param {(page: number) => void} open
 * @param {CoreCost | null} about
 */
export function launchList(units, kernels, open, about) {
  const tabs = kernels.map((kernel, i) =>
    h(
      "button",
      {
        type: "button",
        role: "tab",
        class: "code-tab",
        title: kernel.name,
        "data-item": kernel.item,
        "data-page": i + 1,
        "data-equal": about && kernel.cost && kernel.cost.row !== i ? kernel.cost.row + 1 : undefined,
        onclick: () => open(i + 1),
      },
      launchRow(units, kernel, i + 1, about && kernel.cost),
    ),
  );
  const element = h(
    "div",
    { class: "code-launches", role: "tablist", "aria-label": "kernels", "aria-orientation": "vertical" },
    tabs,
  );
  /** @type {number[]} */
  let shown;
  const sort = (/** @type {boolean} */ ranked) => {
    shown = ranking(kernels, ranked);
    shown.forEach((i, place) => (tabs[i].style.order = String(place)));
    heads.forEach((head, i) => head.setAttribute("aria-pressed", String((i === 1) === ranked)));
  };
  const means = about?.columns;
  const heads = ["#", "share"].map((words, i) =>
    h(
      "button",
      {
        type: "button",
        class: i ? "launch-share" : "launch-number",
        ...meaning(i ? means?.share : means?.order),
        onclick: () => sort(i > 0),
      },
      words,
    ),
  );
  const limits = kernels.some(({ cost }) => cost?.limit);
  const column = (/** @type {string} */ name, /** @type {string} */ words, /** @type {string | undefined} */ said) =>
    h("span", { class: name, tabindex: 0, role: "note", ...meaning(said) }, words);
  const head = h(
    "div",
    { class: "launch-head" },
    heads[0],
    column("launch-bar", "lines", means?.lines),
    column("code-name", "kernel", means?.kernel),
    column("launch-times", "launches", means?.times),
    column("launch-kind", limits ? "limit" : "kind", limits ? means?.limit : means?.kind),
    column("launch-bytes", about?.what ?? "", means?.amount),
    heads[1],
  );
  sort(about !== null);
  element.addEventListener("keydown", (event) => {
    const rows = shown.filter((i) => tabs[i].offsetParent);
    const at = rows.findIndex((i) => tabs[i].tabIndex === 0);
    /** @type {Record<string, number>} */
    const next = { ArrowUp: at - 1, ArrowDown: at + 1, Home: 0, End: rows.length - 1 };
    if (!Object.hasOwn(next, event.key)) return;
    const page = rows[(next[event.key] + rows.length) % rows.length] + 1;
    open(page);
    tabs[page - 1].focus();
    event.preventDefault();
  });
  const answer = about ? answerStrip(kernels) : null;
  return { elements: about ? [head, element, answer?.element] : [element], element, tabs, answer };
}
