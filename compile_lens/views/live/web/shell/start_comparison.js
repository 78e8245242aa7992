// What the page of a comparison or a difference runs once it is unpacked.

"use strict";

import { comeAlive } from "./alive.js";
import { openComparison } from "./comparison.js";

comeAlive(openComparison);
