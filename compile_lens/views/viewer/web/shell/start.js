// What a page runs once it is unpacked: `boot.js` left what it needs at the page's root, and it is taken away again.
//
// The rooms beside this one import downwards in this order, never up, types too:
//
//     shell → findings → fusion → graph → code → data → dom, types
//
// `boot` stands alone: it is a script of its own. A test holds this (`rooms.test.mjs`).

"use strict";

import { start } from "./main.js";

/** @import { Unpacked } from "./main.js" */

const root = /** @type {HTMLElement & { compileLens?: Unpacked }} */ (document.currentScript?.closest(".compile-lens"));
const { parts, style, unpack, failed } = /** @type {Unpacked} */ (root.compileLens);
delete root.compileLens;
start(root, parts, style, unpack).catch(failed);
