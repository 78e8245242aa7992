// The words of a comparison's counts.

/**
 * `1 loop`, `2 loops` without the number.
 * @param {string} title
 * @param {string} value
 */
export function one(title, value) {
  return value === "1" ? title.replace(/e?s$/, (end) => (end === "es" && !title.endsWith("ches") ? "e" : "")) : title;
}
