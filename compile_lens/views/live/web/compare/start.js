// Starts the page of several captures once it is unpacked. It is an addition to the script of the page of one capture.

"use strict";

import "../answers/start.js";
import { comeAlive } from "../shell/mount.js";
import { openCompare } from "./page.js";

comeAlive(true, openCompare);
