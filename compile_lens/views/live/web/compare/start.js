// What the page of a comparison or a difference runs once it is unpacked.

"use strict";

import { comeAlive } from "../shell/mount.js";
import { openCompare } from "./page.js";

comeAlive(openCompare);
