// Starts the page of a capture once it is unpacked; `compare/start.js` starts that of several captures.
//
// Folders import downwards in this order, never up, types too:
//
//     widget, series, translation → play, compare → answers → shell → chain → panes → findings → fusion → graph → drawing → code → listing → controls → data → dom, types
//
// `boot` stands alone: it is a script of its own. A test holds this (`rules.test.mjs`).

"use strict";

import { comeAlive } from "./mount.js";
import { openCapture } from "./main.js";

comeAlive(false, openCapture);
