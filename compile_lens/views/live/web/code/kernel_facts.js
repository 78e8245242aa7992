// The facts of a kernel: its head above its source, and the links of its lines.

import { button, h, plural, shortened } from "../dom.js";

/** @import { App } from "../data/app.d.ts" */
/** @import { KernelData, Remark } from "../types.d.ts" */
/** @import { LineRange } from "../listing/line_links.js" */

/**
 * Lines that others lack, by the item of their kernel and their number, and what is said of each.
 * @typedef {ReadonlyMap<number, Map<number, string>>} Own
 */

/** Names and launches that are shown before the rest is only counted. */
const FEW = 12;

/** Figures that one looks at with the machine code: they stand beside the names of its forms. */
const COSTS = /register|spill|instruction/;

/**
 * The facts of a kernel.
 * @param {KernelData} kernel
 */
export function kernelCosts({ part, facts }) {
  return part ? facts.filter((fact) => COSTS.test(fact)) : [];
}

/**
 * The head of a kernel: what it is, where it is launched, what it came from.
 * @param {App} app
 * @param {KernelData} kernel
 * @param {(line: number) => void} go shows a line of the module
 */
export function kernelHead(app, kernel, go) {
  const name = button(shortened(kernel.name, 120), () => app.selection.toggle([kernel.item], kernel.name), {
    class: "kernel-name",
  });
  name.dataset.item = String(kernel.item);
  name.title = `pin ${kernel.name}`;
  const chips = kernelChips(kernel).map((chip) => h("span", { class: "kernel-chip" }, chip));
  const shown = kernel.launchLines.slice(0, FEW);
  const launched = shown.map((line) =>
    button(String(line), () => go(line), { class: "kernel-launch", label: `line ${line} of the module` }),
  );
  const more = kernel.launchLines.length - shown.length;
  const word = kernel.launchLines.length === 1 ? "launched in line " : "launched in lines ";
  return h(
    "div",
    { class: "kernel-head" },
    h("div", { class: "kernel-title" }, name, h("span", { class: "kernel-chips" }, chips)),
    h("div", { class: "kernel-origin" }, kernelOrigin(kernel)),
    h(
      "div",
      { class: "kernel-launches" },
      launched.length
        ? [word, ...launched, more > 0 ? `and ${more} more` : null]
        : "no line of the module is known to launch it",
    ),
    remarkList(kernel.remarks),
  );
}

/**
 * Short facts of a kernel.
 * @param {KernelData} kernel
 */
export function kernelChips(kernel) {
  const costs = kernelCosts(kernel);
  // Equal library calls share a row, which counts all of them.
  const times = kernel.cost?.times ?? 0;
  const launched =
    kernel.launches !== null && times > kernel.launches
      ? `${kernel.launches} of ${plural(times, "launch", "launches")}`
      : "";
  return [
    kernel.languageTitle,
    kernel.kind !== kernel.language ? kernel.kind : "",
    launched || kernel.launched,
    kernel.moved,
    ...kernel.facts,
  ].filter((fact) => fact !== "" && !costs.includes(fact));
}

/**
 * Operators and Python lines that a kernel came from, or why they are unknown.
 * @param {KernelData} kernel
 */
function kernelOrigin({ operators, lines, unknown }) {
  /** @type {(Node | string)[]} */
  const parts = [];
  for (const names of [operators, lines]) {
    if (names.length === 0) continue;
    const few = names.slice(0, FEW).map((name) => shortened(name, 60));
    const rest = names.length > FEW ? `, and ${names.length - FEW} more` : "";
    parts.push(
      "← ",
      h("span", { class: "kernel-names", title: shortened(names.join(", "), 2000) }, few.join(", ")),
      `${rest} `,
    );
  }
  if (unknown) parts.push(h("span", { class: "kernel-unknown" }, unknown));
  return parts;
}

/**
 * Short texts below each other; one with lines opens.
 * @param {Remark[]} remarks
 */
export function remarkList(remarks) {
  return remarks.map(({ title, lines }) =>
    lines.length
      ? h(
          "details",
          { class: "remark" },
          h("summary", {}, title),
          h(
            "ul",
            {},
            lines.map((line) => h("li", {}, line)),
          ),
        )
      : h("div", { class: "remark" }, title),
  );
}

/**
 * The remark behind a line: `← cos, for the derivative of sin · again, also in k1`.
 * @param {string[]} origins
 * @param {Map<string, string>} again
 * @param {Map<string, string>} whose
 */
export function originWord(origins, again, whose = new Map()) {
  const names = origins.slice(0, 3).map((name) => shortened(name, 32));
  const more = origins.length > 3 ? ` and ${origins.length - 3} more` : "";
  const needed = [...new Set(origins.flatMap((name) => whose.get(name) ?? []))].map((words) => `, ${words}`);
  const words = `← ${names.join(", ")}${more}${needed.slice(0, 2).join("")}`;
  const twice = origins.filter((name) => again.has(name));
  if (twice.length === 0) return words;
  const [first, ...others] = (again.get(twice[0]) ?? "").split(", ");
  const which = origins.length > 1 ? `${shortened(twice[0], 32)} ` : "";
  return `${words} · ${which}again, also in ${shortened(first, 40)}${others.length ? ` and ${others.length} more` : ""}`;
}

/**
 * The data by which a listing links a kernel's lines. With `shift`, its source stands that many lines further down.
 * @param {App} app
 * @param {KernelData} kernel
 * @param {number} shift
 */
export function kernelLinks(app, kernel, shift) {
  /** @type {Map<number, number[]>} */
  const items = new Map();
  /** @type {Map<number, string>} */
  const words = new Map();
  const again = new Map(kernel.again);
  const whose = new Map(kernel.whose);
  for (const [line, item] of kernel.items) {
    items.set(line + shift, [...(items.get(line + shift) ?? []), item]);
    const above = app.chain.above(item).map((origin) => app.model.name(origin));
    if (above.length) words.set(line + shift, originWord(above, again, whose));
  }
  const titles = new Map(kernel.noOrigin.map(([line, why]) => [line + shift, `no origin: ${why}`]));
  return { items, words, titles };
}

/**
 * The data by which the listing of a module links its lines: those that launch a kernel, and those of its source.
 * @param {App} app
 * @param {KernelData[]} kernels
 */
export function moduleLinks(app, kernels) {
  /** @type {Map<number, number[]>} */
  const items = new Map();
  /** @type {Map<number, string>} */
  const words = new Map();
  /** @type {Map<number, string>} */
  const titles = new Map();
  /** @type {LineRange[]} */
  const ranges = [];
  for (const kernel of kernels) {
    for (const line of kernel.launchLines) items.set(line, [...(items.get(line) ?? []), kernel.item]);
    if (kernel.first === 0) continue;
    ranges.push({ first: kernel.first, last: kernel.last, item: kernel.item, whole: kernel.whole });
    const own = kernelLinks(app, kernel, kernel.first - 1);
    for (const [line, linked] of own.items) items.set(line, [...(items.get(line) ?? []), ...linked]);
    for (const [line, word] of own.words) words.set(line, word);
    for (const [line, title] of own.titles) titles.set(line, title);
  }
  return { items, words, titles, ranges };
}

/**
 * The lines of a kernel that no other target has, and what they compute.
 * @param {KernelData} kernel
 * @param {Own} own
 * @returns {Map<number, string>}
 */
export function signsOf(kernel, own) {
  return own.get(kernel.item) ?? new Map();
}
