// The findings that have tabs beside the code, under short names, and the one that a page opens on.

import { grouped } from "../dom.js";

/** @import { FindingHead } from "../types.d.ts" */

/** @type {Record<string, string>} */
const TITLES = { fusion: "why", memory: "memory", ablations: "ablations", benchmark: "benchmark" };

/** Findings that nobody has who did not ask for them, the most special first. */
const ASKED_FOR = ["benchmark", "ablations"];

/**
 * @param {FindingHead[]} findings
 * @param {number} notFused pairs of groups
 * @returns {{ key: string, title: string, badge: string, amber: boolean }[]} `badge` is a figure of it; in amber what
 * there is to explain
 */
export function besideCode(findings, notFused) {
  return findings
    .filter(({ key, missing }) => key in TITLES && !missing)
    .map(({ key, badge }) => {
      const amber = key === "fusion" && notFused > 0;
      return { key, title: TITLES[key], badge: amber ? grouped(notFused) : badge, amber };
    });
}

/**
 * The finding that was asked for by name, "" for none.
 * @param {FindingHead[]} findings
 */
export function requestedFinding(findings) {
  return ASKED_FOR.find((wanted) => findings.some(({ key, missing }) => key === wanted && !missing)) ?? "";
}
