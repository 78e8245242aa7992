// Parts that only some pages carry; `answers/start.js` puts them here.

/** @import { App, Pane } from "../data/app.d.ts" */
/** @import { OpeningAnswer, PictureSection } from "../types.d.ts" */
/** @import { launchList, markLaunch, mostJoined } from "./launches.js" */

/**
 * What these parts know of the page.
 * @typedef {object} PageOfCapture
 * @property {App} app
 * @property {boolean} standalone whether the page is its own, and has an address
 * @property {{ shown: { element: HTMLElement, pane: Pane | null, place: { stage: number }, ready: Promise<void> }[] }} panes
 * @property {{ element: HTMLElement, phase: string }} flow
 * @property {HTMLElement} element
 * @property {() => string} hash of what is shown
 */

/** @typedef {{ link: (element: HTMLElement, button: HTMLElement, items: number[]) => void }} Linking links to items */

/** @typedef {{ element: HTMLElement, begin: (wanted: string, fields: Element[]) => void }} FindTotal */

/**
 * @typedef {object} KernelLists
 * @property {typeof launchList} launchList
 * @property {typeof markLaunch} markLaunch
 * @property {typeof mostJoined} mostJoined
 */

/**
 * @typedef {object} Additions
 * @property {KernelLists} [lists]
 * @property {(page: PageOfCapture) => FindTotal} [findTotal]
 * @property {(page: PageOfCapture) => void} [complete] once the page is made
 * @property {(page: PageOfCapture) => HTMLElement} [shareRow]
 * @property {(pane: Linking, section: PictureSection, image: HTMLElement) => HTMLElement} [spots]
 * @property {(answers: OpeningAnswer[], lead: (answer: OpeningAnswer) => void) => HTMLElement} [answersRow]
 */

/** @type {Additions} */
export const additions = {};
