// Parts that only some pages carry; `answers/start.js` puts them here.

/** @import { OpeningAnswer } from "../types.d.ts" */
/** @import { launchList, markLaunch, mostJoined } from "./launches.js" */

/**
 * @typedef {object} KernelLists
 * @property {typeof launchList} launchList
 * @property {typeof markLaunch} markLaunch
 * @property {typeof mostJoined} mostJoined
 */

/**
 * @typedef {object} Additions
 * @property {KernelLists} [lists]
 * @property {(answers: OpeningAnswer[], lead: (answer: OpeningAnswer) => void) => HTMLElement} [answersRow]
 */

/** @type {Additions} */
export const additions = {};
