// Brings a page to life: reads what it carries, builds the app beside the static layer, and puts that away.

import { h } from "../dom.js";
import { followPointer } from "../controls/pointer.js";

/**
 * Elements that `boot.js` leaves at the root of a page, which are taken away again.
 * @typedef {object} Unpacked
 * @property {Record<string, string>} parts the page's data by name, packed
 * @property {string} style the style sheet
 * @property {(packed: string) => Promise<string>} unpack
 * @property {(error: unknown) => void} failed says on the page that the view did not start
 */

/**
 * The page that is shown: `begin` is called once it stands in the document.
 * @typedef {(host: HTMLElement, parts: Record<string, string>, unpack: Unpacked["unpack"], standalone: boolean,
 *   style: string) => Promise<{ element: HTMLElement, begin?: () => void }>} Open
 */

/**
 * Starts an app in the page of this script, if the page is of its kind.
 * @param {boolean} several whether the app shows several captures side by side
 * @param {Open} open
 */
export function comeAlive(several, open) {
  const root = /** @type {(HTMLElement & { compileLens?: Unpacked }) | null | undefined} */ (
    document.currentScript?.closest(".compile-lens")
  );
  if (!root) return; // the playground opens its pages itself
  const unpacked = /** @type {Unpacked} */ (root.compileLens);
  if (several !== "comparison" in unpacked.parts) return;
  delete root.compileLens;
  start(root, unpacked, open).catch(unpacked.failed);
}

/**
 * A page that has an app is left alone. What goes wrong is said above the static layer.
 * @param {HTMLElement} root the `.compile-lens` element
 * @param {Unpacked} unpacked
 * @param {Open} open
 */
async function start(root, { parts, style, unpack }, open) {
  const host = /** @type {HTMLElement} */ (root.querySelector(":scope > .cl-app") ?? h("div", { class: "cl-app" }));
  if (host.shadowRoot) return;
  // JupyterLab takes no key from inside an element that says this.
  host.setAttribute("data-lm-suppress-shortcuts", "true");
  root.append(host);
  const old = () => root.querySelectorAll(":scope > .cl-not-alive").forEach((message) => message.remove());
  try {
    checkBrowser();
    const shadow = host.attachShadow({ mode: "open" });
    const app = await open(host, parts, unpack, root.hasAttribute("data-standalone"), style);
    shadow.append(h("style", {}, style), app.element);
    root.setAttribute("data-alive", "");
    followPointer(host, shadow);
    app.begin?.();
    old();
  } catch (error) {
    host.remove();
    root.removeAttribute("data-alive");
    old();
    const message = (error instanceof Error ? error.message : String(error)).replace(/\.$/, "");
    root.prepend(
      h(
        "p",
        { class: "cl-not-alive", role: "alert" },
        `The interactive view did not start: ${message}. The page below says the same without it.`,
      ),
    );
  }
}

function checkBrowser() {
  if (typeof DecompressionStream === "undefined" || !CSS.supports("color", "light-dark(#000, #fff)")) {
    throw new Error("it needs a browser of 2024 or later");
  }
}
