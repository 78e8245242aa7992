// The head of the page, one line: what was captured, what to know before any figure, what it saved, for which device.

import { button, grouped, h, shortened } from "../dom.js";
import { keyList } from "../controls/keys.js";
import { Popover } from "../controls/popover.js";

/** @import { Child } from "../dom.js" */
/** @import { Core } from "../types.d.ts" */

/** A device of more characters than this needs room that other words have. */
const LONG_DEVICE = 20;

/** A name of more characters than this loses its middle where there is no room for all of it. */
const LONG_NAME = 24;

/** The section to which a warning leads. */
const LEADS = { break: "go to the next line", recompile: "go to the next of them", eager: "go to what ran eagerly" };

/**
 * @param {Core} core
 * @param {HTMLElement} find the search over all panes
 * @param {boolean} standalone whether the page is its own: its name is then the first of all headings
 * @param {(more: string) => void} lead goes to where more is said of a warning
 * @param {HTMLElement | undefined} share what one gives to others
 * @returns {HTMLElement}
 */
export function pageHeader(core, find, standalone, lead, share) {
  const { warnings, state } = core.outcome;
  const place = placeOfCapture(core);
  const top = h(
    "header",
    { class: "top" },
    pageName(core.title, nameParts(shortened(ownName(core.function), 160)), standalone),
    place ? h("span", { class: "top-place" }, h("span", {}, place)) : null,
    warnings.map(([words, more], i) =>
      more
        ? leading(words, () => lead(more), LEADS[more])
        : h("span", { class: state === "failed" && !i ? "top-chip top-bad" : "top-chip" }, words),
    ),
    headline(core),
    core.device ? deviceOf(core) : h("span", { class: "top-rest" }),
    find,
    pageAbout("about this capture", aboutCapture(core), share),
  );
  new ResizeObserver(() => fit(top)).observe(top);
  return top;
}

/**
 * The name of a page: on a page of its own the first of all headings.
 * @param {string} title
 * @param {Child | Child[]} words
 * @param {boolean} standalone
 */
export function pageName(title, words, standalone) {
  return h("div", { class: "top-name", role: "heading", "aria-level": standalone ? "1" : "2", title }, words);
}

/**
 * The button that opens what is to know of the page, and its keys.
 * @param {string} name
 * @param {...Child} content
 */
export function pageAbout(name, ...content) {
  const opener = button("i", () => undefined, { class: "button top-about", label: name });
  const more = new Popover(opener, h("div", {}, ...content, keyList()), { name, right: true });
  return h("div", { class: "top-more" }, opener, more.element);
}

/**
 * Moves what does not fit into a line that is not seen: then it is said in fewer words, or it is gone, or it would
 * leave its gap.
 * @param {HTMLElement} top
 */
function fit(top) {
  for (const [name, ...ways] of [
    ["top-room", "top-brief", "top-brief top-least", "top-gone"],
    ["top-place", "top-gone"],
  ]) {
    const place = top.querySelector(`.${name}`);
    const words = place?.firstElementChild;
    if (!(place instanceof HTMLElement) || !(words instanceof HTMLElement)) continue;
    place.className = name;
    for (const way of ways)
      if (words.offsetTop >= place.offsetTop + place.offsetHeight) place.className = `${name} ${way}`;
  }
}

/**
 * Shortens a long name by what stands before its end, which gives way to dots.
 * @param {string} name
 */
function nameParts(name) {
  if (name.length <= LONG_NAME) return name;
  const end = name.length - Math.floor(LONG_NAME / 2);
  return [h("span", { class: "name-start" }, name.slice(0, end)), h("span", { class: "name-end" }, name.slice(end))];
}

/**
 * The device and whether it was there, which stands below a long one.
 * @param {Core} core
 */
function deviceOf({ device, stamp, shortStamp }) {
  const less = (/** @type {string} */ words) => h("span", { class: "top-less" }, words);
  const model = Math.max(device.indexOf("("), 0);
  const [first, ...rest] = shortened(shortStamp, 40).split(/(?=, )/);
  return h(
    "span",
    { class: "top-room" },
    h(
      "span",
      {
        class: device.length > LONG_DEVICE ? "top-device top-long" : "top-device",
        title: [device, stamp].filter(Boolean).join(" · "),
      },
      h("b", {}, less(device.slice(0, model)), device.slice(model)),
      stamp ? h("span", { class: "top-stamp" }, first, less(rest.join(""))) : null,
    ),
  );
}

/**
 * A warning that leads to where more is said; at how many places gives way where there is little room.
 * @param {string} words
 * @param {() => void} act
 * @param {string} title
 */
function leading(words, act, title) {
  const [what, where] = words.split(/(?= at \d)/);
  const wide = where ? h("span", { class: "flow-wide" }, where) : null;
  return h("button", { type: "button", class: "top-chip", title: `${words}: ${title}`, onclick: act }, what, wide);
}

/**
 * The name of a function without those of the functions that it stands in; the whole of it is in the title.
 * @param {string} name
 */
export function ownName(name) {
  return name.split(".<locals>.").at(-1) || name;
}

/**
 * The place of what was captured: its own source, else the compilation of its name, else what was compiled first.
 * @param {Core} core
 */
function placeOfCapture({ function: name, sources, compilations, first }) {
  const own = sources.find((source) => source.name === name);
  if (own) return `${own.file.split(/[\\/]/).pop()}:${own.first}`;
  const compiled = compilations.find((one) => one.function === name) ?? compilations[first];
  if (compiled?.place) return compiled.place;
  const [source] = sources;
  return source ? `${source.file.split(/[\\/]/).pop()}:${source.first}` : "";
}

/** The saving, in the largest letters of the page. @param {Core} core */
function headline(core) {
  if (core.savings.length === 0) return null;
  return h(
    "div",
    { class: "top-savings" },
    core.savings.map(([what, before, after, large], i) => {
      const modelled = after.includes("~");
      const [of] = /\w+ operators(?= before)/.exec(what) ?? [];
      const [some] = i ? [] : (/[\d,]+ of [\d,]+ graphs?/.exec(what) ?? []);
      return h(
        "span",
        { class: "saving", title: titleOf(what, after) },
        before ? figure("saving-before", before) : null,
        before ? h("span", { class: "saving-arrow" }, " → ") : null,
        figure(`saving-${large ? "after" : "before"}`, after),
        some ? h("span", { class: "saving-some" }, ` ${some}`) : null,
        modelled
          ? h(
              "span",
              { class: "saving-what" },
              " modelled",
              of ? h("span", { class: "saving-of" }, `, before: ${of}`) : null,
            )
          : null,
      );
    }),
  );
}

/**
 * A figure and its unit: `17 eager ops`, `~160 kB`.
 * @param {string} name of its class
 * @param {string} text
 */
function figure(name, text) {
  const [, number, unit] = /^(\S+(?: [kMGT]?B)?)(.*)$/.exec(text) ?? ["", text, ""];
  return h("span", { class: name }, h("b", {}, number), unit ? h("span", { class: "saving-unit" }, unit) : null);
}

/**
 * Versions, inputs, how it ended, and what ran eagerly.
 * @param {Core} core
 */
function aboutCapture(core) {
  const { state, verdict } = core.outcome;
  return h(
    "div",
    { class: "about" },
    h("p", { class: `top-verdict state-${state}` }, h("span", { class: "top-state", "aria-hidden": "true" }), verdict),
    h(
      "div",
      { class: "top-facts" },
      core.device ? h("span", { class: "fact fact-strong" }, `device: ${core.device}`) : null,
      core.stamp ? h("span", { class: "fact fact-strong" }, `code ${core.stamp}`) : null,
      core.asked ? h("span", { class: "fact fact-strong" }, `options: ${core.asked}`) : null,
      core.environment.map((fact) => h("span", { class: "fact" }, fact)),
      core.created ? h("time", { class: "fact", datetime: core.created }, core.created) : null,
    ),
    savingList(core),
    inputList(core),
    eagerList(core),
    core.outcome.failure ? null : core.outcome.below ? h("p", { class: "top-nothing" }, core.outcome.below) : null,
  );
}

/**
 * The headline in whole words: it is cut where the page is narrow.
 * @param {Core} core
 */
function savingList({ savings }) {
  return savings.map(([what, before, after]) =>
    h("p", { class: "top-inputs" }, `${titleOf(what, after)}: ${before ? `${before} → ` : ""}${after}`),
  );
}

/** @param {string} what @param {string} after */
function titleOf(what, after) {
  return after.includes("~") ? `${what}, modelled` : what;
}

/**
 * The parts that Python ran in place of compiled code, a line each; the sections below say why.
 * @param {Core} core
 */
function eagerList({ eager }) {
  if (eager.length === 0) return null;
  return h(
    "div",
    { class: "top-nothing top-eager" },
    h("b", {}, eager.length === 1 ? "1 place ran eagerly" : `${grouped(eager.length)} places ran eagerly`),
    h(
      "ul",
      {},
      eager.map(({ head, what, frames }) =>
        h("li", {}, h("b", {}, `${head}: `), what, frames.length ? ` (${frames[frames.length - 1]})` : ""),
      ),
    ),
  );
}

/** @param {Core} core */
function inputList({ inputs }) {
  if (inputs.length === 0) return h("p", { class: "top-inputs" }, "no inputs");
  return h(
    "div",
    { class: "top-inputs" },
    h("b", {}, inputs.length === 1 ? "1 input" : `${grouped(inputs.length)} inputs`),
    h(
      "ul",
      {},
      inputs.map((input) => h("li", {}, input)),
    ),
  );
}
