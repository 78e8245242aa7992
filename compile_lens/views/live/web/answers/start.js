// What a page of its own has, and one of several kernels: an addition to the script of the page of one capture.

"use strict";

import { additions } from "../code/additions.js";
import { answersRow } from "./answers_row.js";
import { launchList, markLaunch, mostJoined } from "../code/launches.js";

additions.answersRow = answersRow;
additions.lists = { launchList, markLaunch, mostJoined };
