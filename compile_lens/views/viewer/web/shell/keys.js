// Who hears the keys of an app. On a page of its own it is the page; in a notebook they are the notebook's, unless the
// focus is inside.

/**
 * @param {HTMLElement} host what the app stands in
 * @param {boolean} standalone whether the page is its own
 * @param {(event: KeyboardEvent) => void} act
 */
export function hearKeys(host, standalone, act) {
  host.addEventListener("keydown", act);
  if (!standalone) return;
  // Nothing has the focus when a page opens, and none is left where what had it went with Back.
  document.addEventListener("keydown", (event) => {
    if (event.target === document.body || event.target === document.documentElement) act(event);
  });
}
