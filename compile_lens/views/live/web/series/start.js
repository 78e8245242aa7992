// Starts the page of a series once it is unpacked: an addition to the script of the page of one capture.

"use strict";

import "../answers/start.js";
import { comeAlive } from "../shell/mount.js";
import { openSeries } from "./series.js";

comeAlive(true, openSeries);
