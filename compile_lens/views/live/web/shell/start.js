// What the page of a capture runs once it is unpacked; that of a comparison runs `start_comparison.js`.
//
// The rooms beside this one import downwards in this order, never up, types too:
//
//     shell → findings → fusion → graph → code → data → dom, types
//
// `boot` stands alone: it is a script of its own. A test holds this (`rules.test.mjs`).

"use strict";

import { comeAlive } from "./alive.js";
import { openCapture } from "./main.js";

comeAlive(openCapture);
