// Parts that only some pages carry; `answers/start.js` puts them here.

/** @import { launchList, markLaunch, mostJoined } from "./launches.js" */

/**
 * @typedef {object} KernelLists
 * @property {typeof launchList} launchList
 * @property {typeof markLaunch} markLaunch
 * @property {typeof mostJoined} mostJoined
 */

/** @type {{ lists?: KernelLists }} */
export const additions = {};
