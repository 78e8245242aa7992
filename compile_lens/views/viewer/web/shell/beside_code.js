// Which findings stand as tabs beside the code, under short names.

import { grouped } from "../dom.js";

/** @import { FindingHead } from "../types.d.ts" */

/** @type {Record<string, string>} */
const TITLES = { fusion: "why", memory: "memory", ablations: "ablations", benchmark: "benchmark" };

/**
 * @param {FindingHead[]} findings
 * @param {number} apart pairs of groups that stayed apart
 * @returns {{ key: string, title: string, badge: string }[]} `badge` is what there is to explain
 */
export function besideCode(findings, apart) {
  return findings
    .filter(({ key, missing }) => key in TITLES && !missing)
    .map(({ key }) => ({ key, title: TITLES[key], badge: key === "fusion" && apart ? grouped(apart) : "" }));
}
