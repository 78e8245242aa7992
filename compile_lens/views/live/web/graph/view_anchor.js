// Many boxes open or close at once: what stands in the middle of the view is still there afterwards.

import { trunk } from "../drawing/walk.js";

/** @import { GraphPane } from "./pane.js" */
/** @import { BoxView } from "../drawing/views.js" */

/**
 * Draws with other boxes open, unless these are too many.
 * @param {GraphPane} pane
 * @param {Set<number>} open
 */
export function around(pane, open) {
  const { viewport, drawing } = pane;
  const view = middlemost(drawing.boxes, open, viewport.visible);
  if (!pane.arrange(open, view)) return false;
  if (!view) return true;
  viewport.reveal(view.at);
  const { inside } = view;
  if (inside) viewport.revealAcross(view.at, (height, width) => trunk(inside.boxes, height, width));
  return true;
}

/**
 * What is told of the matches of a search: when nothing is looked for any more, the boxes that it opened close.
 * @param {GraphPane} pane
 * @param {(locals: number[]) => void} found
 */
export function restoring(pane, found) {
  /** @type {Set<number> | null} */
  let before = null;
  return (/** @type {number[]} */ locals) => {
    if (pane.search.query.trim() !== "") before ??= pane.open;
    else if (before) {
      const open = before;
      before = null;
      if ([...pane.open].some((body) => !open.has(body))) around(pane, open);
    }
    found(locals);
  };
}

/**
 * The box next to the middle of a view, of those that stay when others are open, the innermost of several; frames
 * that stay open are only ground.
 * @param {BoxView[]} boxes
 * @param {ReadonlySet<number>} open
 * @param {{ x: number, y: number, width: number, height: number }} view
 * @returns {BoxView | null}
 */
function middlemost(boxes, open, { x, y, width, height }) {
  /** @param {BoxView} view @returns {boolean} */
  const stays = ({ level: { parent } }) => parent === null || (open.has(parent.box.body) && stays(parent));
  let best = null;
  let least = Infinity;
  for (const view of boxes) {
    if ((view.inside && open.has(view.box.body)) || !stays(view)) continue;
    const [left, top, w, h] = view.at;
    const across = Math.max(left - x - width / 2, x + width / 2 - left - w, 0);
    const far = Math.hypot(across, Math.max(top - y - height / 2, y + height / 2 - top - h, 0));
    if (far > least) continue;
    least = far;
    best = view;
  }
  return best;
}
