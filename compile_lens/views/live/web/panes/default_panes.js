// The panes with which a page opens, before anyone chooses.

import { endedBadly } from "../findings/outcome_pane.js";
import { placeOfFinding, placeOfOutcome, sourceHeight, usualPlaces } from "./arrangement.js";
import { requestedFinding } from "./finding_tabs.js";
import { kindOf } from "./tabs.js";

/** @import { Core, Source } from "../types.d.ts" */
/** @import { Model } from "../data/model.js" */
/** @import { Place } from "./arrangement.js" */
/** @import { Group } from "./tab_groups.js" */

/** Lines of a source below which there is room for the graph, and the width from which three long panes fit. */
const SHORT_SOURCE = 12;
export const WIDE = 1100;
/** Compilations whose table has the room below the source for itself, so that the graph stands below the code. */
const MANY_COMPILATIONS = 3;
/** Pixels of height below which a source with a table leaves no room below it. */
const LOW = 560;
/** Lines of a note with a hint. */
const HINTED = 2;

/**
 * True if the graph stands below the source: where that is short, and where three would be too narrow.
 * @param {Core} core
 * @param {number} width pixels
 */
export function graphBelow({ sources, compilations }, width) {
  const short = linesOf(sources) <= SHORT_SOURCE || compilations.length > MANY_COMPILATIONS;
  return sources.length > 0 && (short || (width > 0 && width < WIDE));
}

/**
 * True if the table of the compilations has all of the room below the source.
 * @param {number} count
 * @param {number} height pixels of the panes
 */
export function tableBeside(count, height) {
  return count > (height < LOW ? 1 : MANY_COMPILATIONS);
}

/** Lines of all functions. @param {Source[]} sources */
function linesOf(sources) {
  return sources.reduce((sum, { code }) => sum + code.text.trimEnd().split("\n").length, 0);
}

/** Pixels that the source needs to be seen whole. @param {Core} core */
export function heightOfSource({ sources, compilations, breaks, outcome }) {
  const notes = breaks.reduce((sum, { hint }) => sum + (hint ? HINTED : 1), outcome.failure ? 1 : 0);
  return sourceHeight(linesOf(sources), sources.length, compilations.length, notes);
}

/**
 * Source, graph and code; before the code stands what was asked for, or how it ended where that was not well.
 * @param {Model} model
 * @param {number} compilation
 * @param {number} width pixels
 * @param {boolean} below whether the graph stands below the source
 * @param {string} phase that is wanted first
 * @param {boolean} own whether the source is one of the panes
 * @returns {Group[]} the most wanted first
 */
export function usualGroups(model, compilation, width, below, phase, own) {
  const { core, index } = model;
  const python = own && (core.sources.length > 0 || index.stages[0].count > 0);
  const places = usualPlaces(core.compilations[compilation], width, python, below, phase);
  const groups = places.map((place) => [place]);
  if (endedBadly(core)) return before(model, groups, placeOfOutcome());
  const finding = requestedFinding(core.findings);
  if (!finding) return groups;
  const number = core.findings.findIndex(({ key }) => key === finding);
  return before(model, groups, placeOfFinding(finding, number));
}

/**
 * @param {Model} model
 * @param {Group[]} groups
 * @param {Place} place that stands before the code, or in its place
 */
function before(model, groups, place) {
  const code = groups.find(([known]) => kindOf(model, known) === "code");
  if (code) code.unshift(place);
  else groups.splice(1, 0, [place]);
  return groups;
}
