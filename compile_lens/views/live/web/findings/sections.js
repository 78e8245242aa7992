// The sections of a finding: tables, paragraphs, code, pictures, changes to step through, things side by side.

import { additions } from "../code/additions.js";
import { Listing } from "../listing/listing.js";
import { button, h, plural, put } from "../dom.js";

/** @import { FindingColumn, FindingSection, StepsSection, TableSection, Text } from "../types.d.ts" */
/** @import { FindingPane } from "./pane.js" */

/** Rows that are shown at first, and those that each click adds. */
const ROWS = { first: 40, more: 400 };

/**
 * @param {FindingPane} pane
 * @param {FindingSection} section
 * @returns {HTMLElement}
 */
export function findingSection(pane, section) {
  const body = sectionBody(pane, section);
  return h(
    "section",
    { class: `finding-section finding-of-${section.kind}` },
    section.title ? sectionTitle(section.title) : null,
    body,
  );
}

/** @param {string} title */
function sectionTitle(title) {
  const [where, colon, what] = title.includes(": ")
    ? [title.slice(0, title.indexOf(": ")), ": ", title.slice(title.indexOf(": ") + 2)]
    : ["", "", title];
  return h(
    "div",
    { class: "finding-title", role: "heading", "aria-level": "3" },
    colon ? h("span", { class: "finding-place" }, where) : null,
    what,
  );
}

/**
 * @param {FindingPane} pane
 * @param {FindingSection} section
 * @returns {(HTMLElement | null)[]}
 */
function sectionBody(pane, section) {
  switch (section.kind) {
    case "table":
      return tableSection(pane, section);
    case "prose":
      return section.paragraphs.map((words) => h("p", { class: "finding-words" }, words));
    case "block":
      return [codeListing(pane, section.title || "text", section.code)];
    case "picture": {
      const source = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(section.svg)}`;
      const image = h("img", { class: "finding-picture", src: source, alt: section.alt });
      return [additions.spots?.(pane, section, image) ?? image];
    }
    case "steps":
      return stepsSection(pane, section);
    case "columns":
      return [
        h(
          "div",
          { class: "finding-columns" },
          section.columns.map((column) => columnOf(pane, column, section.title ? 4 : 3)),
        ),
      ];
  }
}

/**
 * @param {FindingPane} pane
 * @param {TableSection} section
 */
function tableSection(pane, section) {
  const words = section.words.map((text) => h("p", { class: "finding-words" }, text));
  const left = section.left ? h("p", { class: "finding-left" }, section.left) : null;
  if (section.rows.length === 0) return [...words, left];
  const place = h("div", {});
  const fill = () => put(place, ...words, tableOf(pane, section), left);
  if (!section.full) {
    fill();
    return [place];
  }
  const fold = h(
    "details",
    { class: "finding-fold" },
    h("summary", {}, `show ${plural(section.rows.length, "row")}`),
    place,
  );
  fold.addEventListener("toggle", () => {
    if (fold.open && !place.firstChild) fill();
  });
  return [fold];
}

/**
 * @param {FindingPane} pane
 * @param {TableSection} section
 */
function tableOf(pane, { title, head, rows, ...section }) {
  // A column that no row fills is left out, as a note that is empty.
  const kinds = section.kinds.map((kind, i) => (rows.every(({ cells }) => cells[i] === "") ? "note" : kind));
  const columns = kinds.map((kind, i) => ({ kind, word: head[i] })).filter(({ kind }) => kind !== "note");
  const table = h(
    "table",
    { class: "finding-rows" },
    h("caption", { class: "unseen" }, title),
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        columns.map(({ kind, word }) => h("th", { scope: "col", class: `cell-${kind}` }, word)),
      ),
    ),
  );
  const rest = button("", () => add(ROWS.more), { class: "button finding-more" });
  let shown = 0;
  /** @param {number} count */
  const add = (count) => {
    const fresh = rows.slice(shown, shown + count).map((row) => rowOf(pane, row, kinds));
    table.append(...fresh);
    if (shown > 0) fresh[0]?.querySelector("button")?.focus({ preventScroll: true });
    shown += fresh.length;
    rest.hidden = shown === rows.length;
    rest.textContent = `${plural(rows.length - shown, "row")} more`;
  };
  add(ROWS.first);
  return h("div", { class: "finding-scroll", tabindex: "0", role: "region", "aria-label": title }, table, rest);
}

/**
 * A row, and below it what it rests on.
 * @param {FindingPane} pane
 * @param {{ cells: string[], items: number[] }} row
 * @param {string[]} kinds
 */
function rowOf(pane, { cells, items }, kinds) {
  const link = items.length
    ? h("button", { type: "button", class: "finding-link", "aria-pressed": "false" }, cells[0])
    : null;
  const plain = cells.map((cell, i) =>
    kinds[i] === "note" ? null : h("td", { class: `cell-${kinds[i]}`, dir: "auto" }, i === 0 && link ? link : cell),
  );
  const notes = cells.filter((cell, i) => kinds[i] === "note" && cell !== "");
  const span = kinds.filter((kind) => kind !== "note").length;
  const body = h(
    "tbody",
    {},
    h("tr", {}, plain),
    notes.map((note) => h("tr", { class: "finding-note" }, h("td", { colspan: span, dir: "auto" }, note))),
  );
  if (link) pane.link(body, link, items);
  return body;
}

/**
 * One change at a time, with what was there before beside what is there now.
 * @param {FindingPane} pane
 * @param {StepsSection} section
 */
function stepsSection(pane, { title, steps, left }) {
  let at = 0;
  const back = button("‹ previous", () => go(-1), { class: "button step-back" });
  const on = button("next ›", () => go(1), { class: "button step-on" });
  const count = h("span", { class: "step-count", role: "status" });
  const name = h("button", { type: "button", class: "finding-link step-name", "aria-pressed": "false" });
  const words = h("div", { class: "step-words" });
  const sides = h("div", { class: "step-sides" });
  const box = h(
    "div",
    { class: "step-box", role: "group", "aria-label": title },
    h("div", { class: "step-bar" }, back, on, count),
    name,
    words,
    sides,
  );
  /** @type {Listing[]} */
  let shown = [];
  const show = () => {
    const step = steps[at];
    pane.unlink(name);
    for (const listing of shown) {
      listing.close();
      pane.listings.delete(listing);
    }
    put(name, step.title);
    name.disabled = step.items.length === 0;
    if (step.items.length) pane.link(name, name, step.items);
    put(
      words,
      step.words.map((text) => h("p", { class: "finding-words" }, text)),
    );
    count.textContent = `${at + 1} of ${steps.length}`;
    back.disabled = at === 0;
    on.disabled = at === steps.length - 1;
    const [before, after] = [step.before, step.after].map((text, i) => side(pane, i === 0 ? "before" : "after", text));
    shown = [before.listing, after.listing].filter((listing) => listing !== null);
    put(sides, before.element, after.element);
  };
  /** @param {number} by */
  const go = (by) => {
    at = Math.max(0, Math.min(steps.length - 1, at + by));
    show();
    // A button that is at its end loses the focus: the other one takes it.
    if (by < 0 && back.disabled) on.focus();
    if (by > 0 && on.disabled) back.focus();
  };
  show();
  return [box, left ? h("p", { class: "finding-left" }, left) : null];
}

/**
 * @param {FindingPane} pane
 * @param {string} name
 * @param {Text} text
 * @returns {{ element: HTMLElement, listing: Listing | null }}
 */
function side(pane, name, text) {
  const head = h("div", { class: "step-side-name" }, name);
  if (text.text === "")
    return {
      element: h("div", { class: "step-side" }, head, h("p", { class: "finding-left" }, "nothing")),
      listing: null,
    };
  const listing = listingOf(pane, name, text);
  return { element: h("div", { class: "step-side" }, head, listing.element), listing };
}

/**
 * @param {FindingPane} pane
 * @param {FindingColumn} column
 * @param {number} level of its heading, one below that of the section
 */
function columnOf(pane, { title, words, figures, blocks, left }, level) {
  return h(
    "section",
    { class: "finding-column", "aria-label": title },
    h("div", { class: "finding-title", role: "heading", "aria-level": `${level}` }, title),
    h(
      "dl",
      { class: "finding-figures" },
      figures.map(([what, value]) => h("div", {}, h("dd", {}, value), h("dt", {}, what))),
    ),
    words.map((text) => h("p", { class: "finding-words" }, text)),
    blocks.map((block) => foldedCode(pane, block.title, block.code)),
    left ? h("p", { class: "finding-left" }, left) : null,
  );
}

/**
 * @param {FindingPane} pane
 * @param {string} title
 * @param {Text} code
 */
function foldedCode(pane, title, code) {
  const fold = h("details", { class: "finding-fold" }, h("summary", {}, h("code", {}, title)));
  fold.addEventListener("toggle", () => {
    if (fold.open && fold.children.length === 1) fold.append(codeListing(pane, title, code));
  });
  return fold;
}

/** @param {FindingPane} pane @param {string} label @param {Text} text */
function codeListing(pane, label, text) {
  return listingOf(pane, label, text).element;
}

/** @param {FindingPane} pane @param {string} label @param {Text} text */
function listingOf(pane, label, text) {
  const listing = new Listing(pane.app, { text, label, viewport: pane.element });
  pane.listings.add(listing);
  // It measures itself, and can only do that on the page.
  queueMicrotask(() => listing.resized());
  return listing;
}
