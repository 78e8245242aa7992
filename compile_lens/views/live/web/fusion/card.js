// A loop or a group of the fusion view: its name, what it computes, its traffic, its kernels.

import { bytesInShort } from "../data/facts.js";
import { h, shortened } from "../dom.js";
import { firstNames } from "./plan.js";

/** @import { PlanCard, PlanRow } from "./plan.js" */

/**
 * A loop or a group as a button.
 * @param {PlanCard} card
 * @param {"loop" | "group"} what
 * @param {PlanRow | null} row of a group
 */
export function fusionCard(card, what, row) {
  const several = row !== null && row.loops.length > 1;
  const extern = card.kind === "extern" || card.kind === "template";
  const moved =
    card.reads < 0 || card.writes < 0 ? "" : `reads ${bytesInShort(card.reads)} · writes ${bytesInShort(card.writes)}`;
  const does = firstNames(card.what, several ? 5 : 3) || card.target;
  const kernels = row ? firstNames(row.kernels, 2) : "";
  return h(
    "button",
    {
      type: "button",
      class: `fusion-card fusion-${what}${extern ? " fusion-extern" : ""}${card.kind === "nop" ? " fusion-idle" : ""}`,
      "data-item": card.item,
      "aria-pressed": "false",
      style: kindStyle(card.kind),
      title: shortened([card.name, card.target, card.what.join(", ")].filter(Boolean).join("\n"), 600),
      "aria-label": [
        `${what} ${shortened(card.name, 80)}`,
        card.kind,
        shortened(does, 200),
        moved && `${moved} modelled`,
        kernels && `runs in ${shortened(kernels, 200)}`,
      ]
        .filter(Boolean)
        .join(", "),
    },
    h(
      "span",
      { class: "fusion-head" },
      h("bdi", { class: "fusion-name" }, shortened(card.name, 60)),
      h("span", { class: "fusion-kind" }, kindText(card)),
      h("span", { class: "fusion-dots" }),
    ),
    does ? h("bdi", { class: "fusion-does" }, shortened(does, 120)) : null,
    moved ? h("span", { class: "fusion-bytes" }, moved) : null,
    kernels ? h("bdi", { class: "fusion-kernel" }, `→ ${shortened(kernels, 80)}`) : null,
  );
}

/** @param {PlanCard} card */
function kindText({ kind, target }) {
  if (target === "UserDefinedTritonKernel") return "user-written";
  return kind === "extern" ? "library call" : kind;
}

/** The saving of fusing the loops of a row, in words; null where it is nothing. @param {PlanRow} row */
export function savedText({ saved }) {
  if (saved === null || saved === 0) return null;
  const words = saved > 0 ? `saves ${bytesInShort(saved)}` : `moves ${bytesInShort(-saved)} more`;
  return h(
    "span",
    {
      class: "fusion-saved",
      title: "Bytes that the loops move alone, less those that the group moves: modelled from sizes",
    },
    words,
  );
}

/** The colours of a kind, as the properties that the style sheet uses. @param {string} kind */
export function kindStyle(kind) {
  const known = /^[a-z]+$/.test(kind) ? kind : "other";
  return `--own-line:var(--kind-${known}-line,var(--kind-other-line));--own-fill:var(--kind-${known}-fill,var(--kind-other-fill))`;
}
