// What was pinned, open and scrolled on a page, brought to the one that takes its place.

import { turnOfOthers } from "../dom.js";
import { Scrolls } from "../panes/scroll_positions.js";
import { decodeState } from "../shell/permalink.js";

/** @import { openCompare } from "../compare/page.js" */
/** @import { openCapture } from "../shell/main.js" */
/** @typedef {Awaited<ReturnType<typeof openCapture>>} Shell */
/** @typedef {Awaited<ReturnType<typeof openCompare>>} ComparePage */
/** @typedef {{ key: string, body: Element, scrolls: Scrolls }} Place */
/** @typedef {{ key: string, name: string, number: number, top: number, left: number }} Scrolled */

/** Milliseconds for which the panes of a new page may keep it waiting. */
const PATIENCE = 1500;

/**
 * A page of one capture.
 * @param {Shell} page
 * @param {Shell | ComparePage | undefined} old
 */
export async function takeOverCapture(page, old) {
  const { panes } = page;
  if (old) {
    if ("panes" in old) {
      for (const [key, share] of old.panes.shares) panes.shares.set(key, share);
      panes.large = old.panes.large;
    }
    const state = decodeState(old.hash(), page.model.index, page.findings());
    if (state) page.restore(state);
    // Usual panes have no place in an address, and yet a view that was chosen: they have not read their data yet.
    for (const { place, view } of "panes" in old ? old.panes.shown : []) {
      const frame = panes.frames.get(place.key);
      if (frame && view) frame.view = view;
    }
  }
  const ready = Promise.all(panes.shown.map((frame) => frame.ready));
  await Promise.race([ready, new Promise((late) => setTimeout(late, PATIENCE))]);
}

/**
 * A page of two targets, whose panes are there already.
 * @param {ComparePage} page
 * @param {Shell | ComparePage | undefined} old
 */
export async function takeOverCompare(page, old) {
  // Once it has a size it scrolls to what it shows first.
  await new Promise((sized) => requestAnimationFrame(sized));
  await turnOfOthers();
  if (!old) return;
  if ("graph" in old) page.graph.chosen = old.graph.chosen;
  await page.restore(old.hash());
  if (!("graph" in old)) return;
  await page.graph.show(page.compared.modules[page.module]);
  for (const [number, side] of page.sides.entries()) {
    const before = old.sides[number]?.pane;
    if (before && before.shown !== before.first.page) side?.pane?.turn(before.shown ? "kernel" : "module");
  }
}

/** The parts of a page that scroll by themselves. @param {Shell | ComparePage} page @returns {Place[]} */
export function placesOf(page) {
  if ("panes" in page) return page.panes.shown.map(({ place, body, scrolls }) => ({ key: place.key, body, scrolls }));
  const bodies = [
    page.graph.body,
    ...page.sources.map(({ element }) => element),
    ...page.there.map(({ body }) => body),
  ];
  return bodies.map((body, number) => ({ key: String(number), body, scrolls: new Scrolls(body) }));
}

/** Everything that is scrolled in some places. @param {Place[]} places @returns {Scrolled[]} */
export function scrolledIn(places) {
  return places.flatMap(({ key, body, scrolls }) =>
    [...scrolls.scrolled]
      .filter((element) => body.contains(element) && (element.scrollTop || element.scrollLeft))
      .map((element) => {
        const name = element.classList[0] ?? "";
        const number = [...body.querySelectorAll(`.${name}`)].indexOf(element);
        return { key, name, number, top: element.scrollTop, left: element.scrollLeft };
      }),
  );
}

/**
 * @param {Place[]} places
 * @param {Scrolled} scrolled
 */
export function scrollTo(places, { key, name, number, top, left }) {
  const place = places.find((one) => one.key === key);
  place?.body.querySelectorAll(`.${name}`)[number]?.scrollTo({ top, left, behavior: "instant" });
}

/** Sections that fold, by what stands in their head. @param {Element} page @returns {Map<string, HTMLDetailsElement>} */
export function foldsOf(page) {
  const folds = [...page.querySelectorAll("details")];
  return new Map(folds.map((fold) => [fold.querySelector("summary")?.textContent ?? "", fold]));
}
