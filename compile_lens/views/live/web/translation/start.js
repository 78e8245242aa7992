// Shows a page in another language. The scripts and the data of a page are in English; this script, which only such a
// page carries, translates the words that they put on it before they are painted. Code and names stay as they are.

import { Translator } from "./translator.js";

/** @import { Unpacked } from "../shell/mount.js" */

const ATTRIBUTES = ["title", "aria-label", "aria-valuetext", "data-means", "placeholder", "alt"];

/** Elements without words. */
const WORDLESS = "script, style, textarea";

/** Elements that hold code, names or the words of the compiler, and notes among them. */
const AS_IT_IS = "pre, code, bdi, .name, .listing-code, .cl-listing";
const NOTE = ".listing-note, .listing-fold";

/** Elements where a single word is a name. */
const NAMES =
  "td.cell-name, .finding-link, .chain-item, .step-name, text.target, .chip-show, .chip-unpin, .code-tab .code-name, .kernel-names, .chain-line";

/** The noun of a number that stands before it. */
const UNIT = ".saving-unit";

const root = /** @type {(HTMLElement & { compileLens?: Unpacked }) | null | undefined} */ (
  document.currentScript?.closest(".compile-lens")
);
const unpacked = root?.compileLens;
if (root && unpacked?.parts.words) void begin(root, unpacked);

/**
 * @param {HTMLElement} page
 * @param {Unpacked} unpacked
 */
async function begin(page, { parts, unpack }) {
  const translator = new Translator(JSON.parse(await unpack(parts.words)));

  const isCode = (/** @type {Element | null} */ element) => element?.closest(`${AS_IT_IS}, ${NOTE}`)?.matches(AS_IT_IS);
  const isName = (/** @type {string} */ text, /** @type {Element | null} */ element) =>
    !/\S\s+\S/.test(text) && element?.closest(NAMES);
  const words = (/** @type {Node} */ node) => {
    const { nodeValue, parentElement } = node;
    if (!nodeValue || isCode(parentElement) || isName(nodeValue, parentElement)) return;
    const translated = parentElement?.matches(UNIT)
      ? translator.translate(`2 ${nodeValue.trim()}`).slice(1)
      : translator.translate(nodeValue);
    if (translated !== node.nodeValue) node.nodeValue = translated;
  };
  const attribute = (/** @type {Element} */ element, /** @type {string} */ name) => {
    const value = element.getAttribute(name);
    if (value === null || isName(value, element)) return;
    const translated = translator.translate(value);
    if (translated !== value) element.setAttribute(name, translated);
  };
  const all = (/** @type {Node} */ node) => {
    if (node.nodeType === Node.TEXT_NODE) words(node);
    if (!(node instanceof Element) || node.matches(WORDLESS)) return;
    for (const name of ATTRIBUTES) attribute(node, name);
    if (node.shadowRoot) follow(node.shadowRoot);
    node.childNodes.forEach(all);
  };
  const follow = (/** @type {Node} */ top) => {
    top.childNodes.forEach(all);
    observer.observe(top, {
      subtree: true,
      childList: true,
      characterData: true,
      attributeFilter: ATTRIBUTES,
    });
  };
  const observer = new MutationObserver((changes) => {
    for (const { type, target, addedNodes, attributeName } of changes) {
      if (type === "childList") addedNodes.forEach(all);
      else if (type === "characterData") words(target);
      else if (target instanceof Element) attribute(target, attributeName ?? "");
    }
    observer.takeRecords(); // its own changes
  });
  // The page of the scripts stands in a shadow of the element that they add.
  follow(page);
}
