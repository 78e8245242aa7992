// Tabs and names in a pane of code stand for their kernels; its lines are the listing's.

/** @import { App } from "../data/app.d.ts" */

/**
 * Shows the chain of a kernel while the pointer or the focus is on its name.
 * @param {App} app
 * @param {HTMLElement} element the pane
 */
export function standForKernels(app, element) {
  /** @param {Event} event */
  const kernelUnder = (event) => {
    const target = event.target instanceof Element ? event.target : null;
    const stands = target?.closest(".listing") ? null : target?.closest("[data-item]");
    return stands instanceof HTMLElement ? Number(stands.dataset.item) : -1;
  };
  /** @param {number} item */
  const preview = (item) =>
    app.selection.preview(item < 0 ? [] : [item], item < 0 ? "" : app.model.name(item), element);
  let over = -1;
  element.addEventListener("pointerover", (event) => {
    const item = kernelUnder(event);
    if (item === over) return;
    over = item;
    if (item >= 0 || !(event.target instanceof Element && event.target.closest(".listing"))) preview(item);
  });
  element.addEventListener("pointerleave", () => {
    if (over >= 0) preview(-1);
    over = -1;
  });
  element.addEventListener("focusin", (event) => {
    const item = kernelUnder(event);
    if (item >= 0 && event.target instanceof Element && event.target.matches(":focus-visible")) preview(item);
  });
  element.addEventListener("focusout", (event) => {
    if (kernelUnder(event) >= 0 && over < 0) app.selection.left(event, element);
  });
}
