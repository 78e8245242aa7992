// The places that share a pane as its tabs. Plain values, no elements.

/** @import { Place } from "./arrangement.js" */

/**
 * The places that share a pane, most recently used first: the first one is shown.
 * @typedef {Place[]} Group
 */

/** Places that stand open at most, shown or as tabs. */
export const MOST_TABS = 12;

/**
 * The groups after one more place was opened: it is shown, and was used last. Without room for a pane of its own it is
 * a tab beside its like, or in the pane that was not used for the longest time.
 * @param {Group[]} groups most recently used first
 * @param {Place} place
 * @param {number} room panes that fit
 * @param {(place: Place) => string} kind
 * @returns {Group[]}
 */
export function withPlace(groups, place, room, kind) {
  const own = groups.find((group) => group.some(({ key }) => key === place.key));
  const known = own?.find(({ key }) => key === place.key);
  if (own && known) return first(groups, own, [known, ...own.filter((one) => one !== known)]);
  if (groups.length < room) return limited([[place], ...groups]);
  const seen = groups.slice(0, room);
  const beside = seen.find((group) => kind(group[0]) === kind(place)) ?? seen[seen.length - 1];
  return limited(first(groups, beside, [{ ...place, at: standsAt(beside[0]) }, ...beside]));
}

/**
 * The stage by which a place stands in the row.
 * @param {Place} place
 */
function standsAt({ at, stage }) {
  return at ?? stage;
}

/**
 * Groups with one of them as another, used last.
 * @param {Group[]} groups
 * @param {Group} old
 * @param {Group} now
 */
function first(groups, old, now) {
  return [now, ...groups.filter((group) => group !== old)];
}

/**
 * Without the places that were not used for the longest time, where there are too many.
 * @param {Group[]} groups
 */
function limited(groups) {
  let over = groups.flat().length - MOST_TABS;
  /** @type {Group[]} */
  const rest = [];
  for (const group of [...groups].reverse()) {
    const gone = Math.max(0, Math.min(over, group.length - 1));
    over -= gone;
    rest.unshift(group.slice(0, group.length - gone));
  }
  return rest;
}

/**
 * @param {Group[]} groups
 * @param {string} key of the place that is closed
 * @returns {Group[]}
 */
export function withoutPlace(groups, key) {
  return regrouped(groups, (place) => (place.key === key ? null : place));
}

/**
 * The same groups of other places: null for one that goes. One that stands open already is not opened twice.
 * @param {Group[]} groups
 * @param {(place: Place) => Place | null} other
 * @returns {Group[]}
 */
export function regrouped(groups, other) {
  /** @type {Set<string>} */
  const known = new Set();
  return groups
    .map((group) =>
      group
        .map(other)
        .filter((place) => place !== null)
        .filter(({ key }) => !known.has(key) && known.add(key)),
    )
    .filter((group) => group.length > 0);
}

/**
 * The panes that stand side by side, in the order of the stages for which they were opened: where there is no room for all, the places of those
 * that were not used for the longest time are tabs beside their like.
 * @param {Group[]} groups most recently used first
 * @param {number} room
 * @param {(place: Place) => string} kind
 * @returns {Group[]}
 */
export function sideBySide(groups, room, kind) {
  const shown = groups.slice(0, room).map((group) => [...group]);
  for (const group of groups.slice(room)) {
    const beside = shown.find((other) => kind(other[0]) === kind(group[0])) ?? shown[shown.length - 1];
    beside?.push(...group);
  }
  return shown.sort(([a], [b]) => standsAt(a) - standsAt(b) || Number(a.fusion) - Number(b.fusion));
}
