// The state of a page in its address, so that a link names it and Back undoes the last step.

import { button, put } from "../dom.js";

/** Milliseconds after a change until the address says it: browsers refuse too many changes of an address. */
const ADDRESS_REST = 250;

export class AddressBar {
  /** @param {() => string} hash of what is shown */
  constructor(hash) {
    this.hash = hash;
    this.timer = 0;
  }

  /** Writes what is shown into the address, once it rests. */
  write() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      const address = new URL(location.href);
      address.hash = this.hash();
      // A step of its own, so that Back undoes it.
      if (address.href !== location.href && address.hash !== location.hash) history.pushState(null, "", address);
    }, ADDRESS_REST);
  }

  /**
   * Follows the address: Back comes here as well, and from the first step to a page without one.
   * @param {() => void | Promise<void>} restore shows what the address says
   */
  follow(restore) {
    window.addEventListener("hashchange", () => {
      clearTimeout(this.timer);
      void Promise.resolve(restore()).then(() => clearTimeout(this.timer));
    });
  }
}

/**
 * Says where the address is not that of the page.
 * @param {HTMLElement} note
 * @param {string} said "" where it is
 */
export function noteTrouble(note, said) {
  note.hidden = said === "";
  const close = button("×", () => (note.hidden = true), { label: "close this note", class: "button link-close" });
  put(note, said ? [said, close] : null);
}
