// Elements from plain values. Text is always set as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

/** @typedef {string | Node | null | undefined | false} Child */

/**
 * An HTML element. `class`, `aria-*`, `data-*`, `role`, … are attributes; `onclick` and the like are listeners;
 * `true` sets an empty attribute, `false` and `null` leave it out.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, unknown>} [properties]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  assign(element, properties);
  fill(element, ...children);
  return element;
}

/**
 * An SVG element.
 * @template {keyof SVGElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, unknown>} [properties]
 * @param {...(Child | Child[])} children
 * @returns {SVGElementTagNameMap[K]}
 */
export function s(tag, properties = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  assign(element, properties);
  fill(element, ...children);
  return element;
}

/**
 * Replaces what an element holds.
 * @param {Element} element
 * @param {...(Child | Child[])} children
 */
export function put(element, ...children) {
  element.replaceChildren();
  fill(element, ...children);
}

/**
 * The attributes of what has a definition: a tooltip for a pointer, and the sentence for `controls/definitions.js`.
 * @param {string} [words]
 */
export function meaning(words) {
  return words ? { title: words, "data-means": words } : {};
}

/**
 * A button with a visible text or, with `label`, a sign that is named for screen readers and in its tooltip. The name of
 * one with a word on it begins with that: who speaks to the page says what is seen.
 * @param {string} text
 * @param {() => void} act
 * @param {{ label?: string, class?: string, pressed?: boolean }} [options]
 * @returns {HTMLButtonElement}
 */
export function button(text, act, options = {}) {
  const word = options.label && /\p{L}{2}/u.test(text) && !options.label.startsWith(text);
  return h(
    "button",
    {
      type: "button",
      class: options.class ?? "button",
      "aria-label": word ? `${text}: ${options.label}` : (options.label ?? null),
      title: options.label ?? null,
      "aria-pressed": options.pressed === undefined ? null : String(options.pressed),
      onclick: act,
    },
    text,
  );
}

/**
 * A text whose addresses of the web lead there; nothing else of it is one.
 * @param {string} text
 * @returns {(string | Node)[]}
 */
export function linked(text) {
  return text
    .split(/(https?:\/\/[^\s"'`<>()[\]{}]*[\w/])/)
    .map((part, i) => (i % 2 ? h("a", { href: part, target: "_blank", rel: "noopener noreferrer" }, part) : part));
}

/**
 * `1 node`, `2 nodes`.
 * @param {number} count
 * @param {string} one
 * @param {string} [many]
 */
export function plural(count, one, many = `${one}s`) {
  return `${grouped(count)} ${count === 1 ? one : many}`;
}

/**
 * `20,000`. Asking the browser for it takes as long as a whole pane when it is asked first.
 * @param {number} count a whole number
 */
export function grouped(count) {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** Lets the page draw and answer. */
export function turnOfOthers() {
  const { scheduler } = /** @type {{ scheduler?: { yield?: () => Promise<void> } }} */ (
    /** @type {unknown} */ (globalThis)
  );
  return scheduler?.yield ? scheduler.yield() : new Promise((done) => setTimeout(done, 0));
}

/**
 * A text of at most `limit` characters, its middle left out.
 * @param {string} text
 * @param {number} limit
 */
export function shortened(text, limit) {
  if (text.length <= limit) return text;
  const tail = Math.floor((limit - 1) / 3);
  return `${text.slice(0, limit - 1 - tail)}…${text.slice(text.length - tail)}`;
}

/**
 * The item that an element stands for; -1 for none.
 * @param {EventTarget | null} target
 */
export function itemOf(target) {
  const element = target instanceof Element ? target.closest("[data-item]") : null;
  return element ? Number(element.getAttribute("data-item")) : -1;
}

/**
 * Puts a text on the clipboard. Pages without https have no clipboard, and a frame may have one that it may not
 * write to: there a selection is copied.
 * @param {string} text
 * @param {HTMLElement} beside an element in the page
 * @returns {Promise<boolean>} true if it worked
 */
export async function copied(text, beside) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const root = beside.getRootNode();
    const focused = root instanceof ShadowRoot || root instanceof Document ? root.activeElement : null;
    const area = h("textarea", { class: "copy-area", readonly: true, "aria-hidden": "true", tabindex: "-1" });
    area.value = text;
    beside.after(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    if (focused instanceof HTMLElement) focused.focus();
    return done;
  }
}

/**
 * @param {Element} element
 * @param {Record<string, unknown>} properties
 */
function assign(element, properties) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on") && typeof value === "function") {
      element.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
}

/**
 * @param {Element} element
 * @param {...(Child | Child[])} children
 */
function fill(element, ...children) {
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child);
  }
}

/**
 * Moves the focus to the one of some buttons that is pressed.
 * @param {Element} buttons what they stand in
 */
export function focusPressed(buttons) {
  /** @type {HTMLElement | null} */ (buttons.querySelector('[aria-pressed="true"]'))?.focus();
}

/**
 * Shows for a moment where someone was led to.
 * @param {Element | null} [element]
 */
export function flash(element) {
  const outline = "3px solid var(--accent)";
  const step = { outline, outlineOffset: "-3px" };
  element?.animate([step, step], 1600);
}
