// What a page of its own has, and one of several kernels: an addition to the script of the page of one capture.

"use strict";

import { additions } from "../code/additions.js";
import { answersRow } from "./answers_row.js";
import { Definitions } from "../controls/definitions.js";
import { FindTotal } from "./find_total.js";
import { shareRow } from "./share.js";
import { pictureWithSpots } from "./picture_spots.js";
import { followPhase } from "./phase_of_findings.js";
import { launchList, markLaunch, mostJoined } from "../code/launches.js";

additions.answersRow = answersRow;
additions.shareRow = shareRow;
additions.spots = pictureWithSpots;
additions.findTotal = (page) => new FindTotal(page);
additions.complete = (page) => {
  new Definitions(page.element);
  followPhase(page);
};
additions.lists = { launchList, markLaunch, mostJoined };
