// The bar over the page of a program: Find with its count, and the keys.

/**
 * @param {boolean} withCauses whether there is a cause to go to
 */
export function bar(withCauses) {
  const make = (/** @type {string} */ name, /** @type {Record<string, string>} */ attributes, text = "") => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.textContent = text;
    return element;
  };
  const input = /** @type {HTMLInputElement} */ (
    make("input", { type: "search", placeholder: "find", "aria-label": "Find in the page", spellcheck: "false" })
  );
  const count = make("span", { class: "cl-count", role: "status" });
  const previous = make("button", { type: "button", "aria-label": "Previous match" }, "↑");
  const next = make("button", { type: "button", "aria-label": "Next match" }, "↓");
  const about = make("button", { type: "button", "aria-expanded": "false" }, "keys");
  const moves = withCauses ? "j k next, previous cause · " : "";
  const keys = make(
    "p",
    { class: "cl-keys" },
    `/ find · n N next, previous match · ${moves}? keys · Esc ends a search and closes what it opened. The address remembers the cause, the search and what is open.`,
  );
  keys.hidden = true;
  about.addEventListener("click", () => {
    keys.hidden = !keys.hidden;
    about.setAttribute("aria-expanded", String(!keys.hidden));
  });
  const whole = make("div", { class: "cl-bar", role: "search" });
  whole.append(input, count, previous, next, about, keys);
  return { bar: whole, input, count, previous, next, about, keys };
}
