// A pane of findings shows those of the phase that the page shows: its badge counts these.

/** @import { PageOfCapture } from "../code/additions.js" */

/**
 * Follows the phase.
 * @param {PageOfCapture} page
 */
export function followPhase(page) {
  /** The phase at whose sections each pane was last. @type {WeakMap<Element, string>} */
  const last = new WeakMap();
  const follow = async () => {
    const { compilation, model } = page.app;
    const title = `${model.core.compilations[compilation]?.id} ${page.flow.phase}`;
    for (const frame of page.panes.shown) {
      await frame.ready;
      const pane = frame.pane?.element;
      if (!pane?.matches(".finding") || last.get(pane) === title) continue;
      const places = [...pane.querySelectorAll(".finding-place")];
      const own = places.find(({ textContent }) => textContent === title || textContent === page.flow.phase);
      // What stands above the first of all belongs to none.
      const first = !last.has(pane) && own === places[0];
      last.set(pane, title);
      // Not into view: that would move the page as well.
      if (!own || first) continue;
      const top = own.closest(".finding-section")?.getBoundingClientRect().top ?? 0;
      pane.scrollTop += top - pane.getBoundingClientRect().top;
    }
  };
  // Its row changes with the phase, and with each pane that opens.
  new MutationObserver(() => void follow()).observe(page.flow.element, {
    attributeFilter: ["aria-pressed"],
    childList: true,
    subtree: true,
  });
}
