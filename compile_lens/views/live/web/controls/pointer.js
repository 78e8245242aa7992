// Tells elements that the pointer has left them, even if the page changed and the pointer did not move: browsers send no
// event to an element that was taken from the page, and its highlights would stay.

/**
 * @param {HTMLElement} host what the app stands in
 * @param {ShadowRoot} root the app
 */
export function followPointer(host, root) {
  /** Elements under the pointer, from the inside out. @type {EventTarget[]} */
  let on = [];
  /** @type {PointerEventInit} */
  let at = {};
  /** @param {EventTarget[]} now */
  const went = (now) => {
    const left = on.filter((one) => !now.includes(one));
    on = now;
    for (const one of left) one.dispatchEvent(new PointerEvent("pointerleave", at));
  };
  const ask = () => {
    const [last] = on;
    if (!(last instanceof Node) || last.isConnected) return;
    const under = root.elementFromPoint(at.clientX ?? 0, at.clientY ?? 0);
    went([]);
    under?.dispatchEvent(new PointerEvent("pointerover", { ...at, bubbles: true, composed: true }));
  };
  // Once the page stands as it will.
  const soon = () => requestAnimationFrame(() => setTimeout(ask));
  /** @param {PointerEvent} event */
  const note = ({ clientX, clientY, pointerType }) => {
    at = { clientX, clientY, pointerType };
  };
  /** @param {PointerEvent} event */
  const over = (event) => {
    if (event.pointerType === "touch") return;
    note(event);
    const path = event.composedPath();
    went(path.slice(0, path.indexOf(root)));
  };
  host.addEventListener("pointermove", note, { capture: true, passive: true });
  host.addEventListener("pointerover", over, { capture: true });
  host.addEventListener("pointerleave", () => went([]));
  for (const name of ["click", "keydown"]) host.addEventListener(name, soon, { capture: true });
}
