// A line between two things that moves their border: by pointer, by arrow keys, evened out by a double click.

import { h } from "../dom.js";

/** Pixels that one press of an arrow key moves. */
const KEY_STEP = 24;

/**
 * A separator. `drag` gets pixels since `begin`; the values are those of what stands before the line.
 * @param {{
 *   across: boolean, label: string,
 *   begin: () => void, drag: (by: number) => void, reset: () => void,
 *   value: () => { now: number, least: number, most: number },
 * }} options `across` for a horizontal line, that moves up and down
 * @returns {{ element: HTMLElement, refresh: () => void }}
 */
export function separator(options) {
  const element = h("div", {
    class: options.across ? "resizer resizer-across" : "resizer",
    role: "separator",
    tabindex: "0",
    "aria-orientation": options.across ? "horizontal" : "vertical",
    "aria-label": options.label,
    title: `${options.label}: drag, arrow keys, or double click to reset`,
  });
  let from = 0;
  let pointer = -1;

  const refresh = () => {
    const { now, least, most } = options.value();
    element.setAttribute("aria-valuenow", String(Math.round(now)));
    element.setAttribute("aria-valuemin", String(Math.round(least)));
    element.setAttribute("aria-valuemax", String(Math.round(Math.max(most, now))));
    element.setAttribute("aria-valuetext", `${Math.round(now)} pixels`);
  };
  /** @param {PointerEvent} event */
  const along = (event) => (options.across ? event.clientY : event.clientX);

  element.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    pointer = event.pointerId;
    from = along(event);
    element.setPointerCapture(pointer);
    element.classList.add("resizer-held");
    options.begin();
  });
  element.addEventListener("pointermove", (event) => {
    if (event.pointerId !== pointer) return;
    options.drag(along(event) - from);
    refresh();
  });
  const release = () => {
    pointer = -1;
    element.classList.remove("resizer-held");
  };
  element.addEventListener("pointerup", release);
  element.addEventListener("pointercancel", release);
  element.addEventListener("lostpointercapture", release);
  element.addEventListener("dblclick", () => {
    options.reset();
    refresh();
  });
  element.addEventListener("keydown", (event) => {
    const [less, more] = options.across ? ["ArrowUp", "ArrowDown"] : ["ArrowLeft", "ArrowRight"];
    const { now, least, most } = options.value();
    /** @type {Record<string, number>} */
    const steps = { [less]: -KEY_STEP, [more]: KEY_STEP, Home: least - now, End: most - now };
    if (event.key === "Enter") {
      options.reset();
    } else if (Object.hasOwn(steps, event.key)) {
      options.begin();
      options.drag(steps[event.key]);
    } else {
      return;
    }
    event.preventDefault();
    refresh();
  });
  return { element, refresh };
}
