// The ledger as a table: what there was to do, and what fusion left of it.

import { h, meaning } from "../dom.js";

/** @import { Ledger } from "../types.d.ts" */

/** Notes that are shown at once; more of them stand folded. */
const FEW_NOTES = 3;

/**
 * @param {Ledger} ledger
 * @param {string} caption
 * @param {boolean} explain whether the meaning of each column stands under its title
 * @returns {HTMLElement}
 */
export function ledgerTable(ledger, caption, explain) {
  const head = h(
    "tr",
    {},
    h("td", {}),
    ledger.columns.map(({ title, meaning: words }) =>
      h(
        "th",
        { scope: "col", tabindex: explain ? null : 0, ...(explain ? {} : meaning(words)) },
        title,
        explain ? h("span", { class: "ledger-meaning" }, words) : null,
      ),
    ),
  );
  const last = ledger.rows.length - 1;
  const rows = ledger.rows.map(({ name, figures }, number) =>
    h(
      "tr",
      { class: number === last ? "ledger-total" : null },
      h("th", { scope: "row", class: `phase-${name}` }, name),
      figures.map((figure) => h("td", {}, figure)),
    ),
  );
  return h(
    "div",
    { class: "ledger" },
    h(
      "div",
      { class: "ledger-scroll", tabindex: "0", role: "region", "aria-label": caption },
      h("table", {}, h("caption", { class: "unseen" }, caption), h("thead", {}, head), h("tbody", {}, rows)),
    ),
    ledgerNotes(ledger.notes),
  );
}

/** @param {string[]} notes */
function ledgerNotes(notes) {
  const shown = notes.map((note) => h("p", { class: "note" }, note));
  if (notes.length <= FEW_NOTES + 1) return shown;
  return h(
    "div",
    {},
    shown[0],
    h("details", {}, h("summary", {}, `${notes.length - 1} more notes on these figures`), shown.slice(1)),
  );
}
