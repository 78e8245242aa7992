// The page of a program: Find, keys, and an address for each cause, section and search. What is shown is the static
// layer; without scripts it is the same page, without these.

import { addressOf, readAddress } from "./address.js";
import { bar } from "./bar.js";
import { search } from "./search.js";

const page = /** @type {HTMLElement} */ (document.querySelector(".compile-lens"));
const shown = /** @type {HTMLElement} */ (page.querySelector(".cl-static"));
const causes = /** @type {HTMLElement[]} */ ([...shown.querySelectorAll(".cl-first .cl-cause")]);
const folds = /** @type {HTMLDetailsElement[]} */ ([...shown.querySelectorAll("details")]);
const parts = bar(causes.length > 0);
const found = search(shown);
let cause = 0;

page.prepend(parts.bar);
for (const [at, row] of causes.entries()) {
  row.tabIndex = 0;
  row.addEventListener("focus", () => select(at + 1));
  row.addEventListener("click", () => getSelection()?.isCollapsed && select(at + 1));
}
linkCaptures();

/** Selects a cause, from 1; 0 selects none. @param {number} number */
function select(number, focus = false) {
  cause = number;
  for (const [at, row] of causes.entries()) row.toggleAttribute("data-on", at + 1 === number);
  const row = causes[number - 1];
  if (row && focus) row.focus();
  row?.scrollIntoView({ block: "nearest" });
  remember();
}

function remember() {
  const open = folds.filter((fold) => fold.open).map(sectionOf);
  history.replaceState(null, "", addressOf({ cause, find: parts.input.value, open }));
}

/** The name of the section that a fold is. @param {HTMLDetailsElement} fold */
function sectionOf(fold) {
  return fold.className.replace(/^cl-/, "");
}

/** @param {string} text */
function find(text) {
  parts.count.textContent = text ? found.find(text) : "";
  if (!text) found.clear();
}

/** @param {number} by */
function step(by) {
  if (parts.input.value) parts.count.textContent = found.step(by);
}

parts.input.addEventListener("input", () => {
  find(parts.input.value);
  remember();
});
parts.next.addEventListener("click", () => step(1));
parts.previous.addEventListener("click", () => step(-1));
for (const fold of folds) fold.addEventListener("toggle", remember);

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const inField = event.target === parts.input;
  /** @type {Record<string, () => void>} */
  const inPage = {
    "/": () => parts.input.select(),
    n: () => step(1),
    N: () => step(-1),
    j: () => select(Math.min(cause + 1, causes.length), true),
    k: () => select(Math.max(cause - 1, 1), true),
    "?": () => parts.about.click(),
    Escape: () => leave(),
  };
  /** @type {Record<string, () => void>} */
  const inFind = { Enter: () => step(event.shiftKey ? -1 : 1), Escape: () => leave() };
  const act = (inField ? inFind : inPage)[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

/** Ends a search, and closes what it opened; else selects no cause. */
function leave() {
  if (!parts.keys.hidden) parts.about.click();
  else if (parts.input.value) {
    parts.input.value = "";
    find("");
    parts.input.blur();
  } else {
    const focused = document.activeElement;
    if (focused instanceof HTMLElement) focused.blur();
    select(0);
  }
  remember();
}

/** Links each compilation to the page of its capture, where one was written beside this page. */
function linkCaptures() {
  const data = page.querySelector(".cl-captures")?.textContent;
  /** @type {Record<string, string>} */
  const pages = data ? JSON.parse(data) : {};
  for (const cell of shown.querySelectorAll(".cl-compilations td:first-child")) {
    const file = pages[cell.textContent ?? ""];
    if (!file) continue;
    const link = document.createElement("a");
    link.href = encodeURIComponent(file);
    link.textContent = cell.textContent;
    link.title = "the capture of this graph";
    cell.replaceChildren(link);
  }
}

function follow() {
  const address = readAddress(location.hash);
  for (const fold of folds) if (address.open.includes(sectionOf(fold))) fold.open = true;
  parts.input.value = address.find;
  find(address.find);
  if (address.cause <= causes.length) select(address.cause, address.cause > 0);
}

follow();
addEventListener("hashchange", follow);
