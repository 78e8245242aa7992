// Where a source of a difference is scrolled to: to what differs in it.

/** @import { SourcePane } from "../code/source_pane.js" */

/**
 * As the page opens.
 * @param {SourcePane} source
 * @param {[number, number] | null} [cause] the column and the item of the first cause that is of it
 */
export function openSource(source, cause) {
  if (cause && showIn(source, [cause[1]])) return;
  const [[part, lines] = []] = source.signs;
  const [line] = lines?.keys() ?? [];
  if (part !== undefined && line !== undefined) showLine(source, part, line - 1);
}

/**
 * Brings the first of some items that has a line into view, and of the line what differs. False if none has.
 * @param {SourcePane} source
 * @param {number[]} items
 */
export function showIn(source, items) {
  for (const item of items)
    for (const [part, { listing }] of source.parts.entries()) {
      const [line] = listing.links.linesOf(item);
      if (line === undefined) continue;
      showLine(source, part, line);
      return true;
    }
  return false;
}

/**
 * @param {SourcePane} source
 * @param {number} part
 * @param {number} line counted from 0
 */
function showLine(source, part, line) {
  const { listing } = source.parts[part];
  listing.showLine(line);
  listing.rows.wrap?.show(line, source.unlike.get(part)?.get(line + 1) ?? 0);
}
