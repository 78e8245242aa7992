// The words of a comparison's counts.

/**
 * `1 loop`, `2 loops` without the number.
 * @param {string} title
 * @param {string} value
 */
export function one(title, value) {
  return value === "1" ? title.replace(/e?s$/, (end) => (end === "es" && !title.endsWith("ches") ? "e" : "")) : title;
}

/**
 * Counts of one column that no other has: `≠ 5 loops, others 4`.
 * @param {[string, string[]][]} counts
 * @param {number} number of the column
 */
export function otherCounts(counts, number) {
  return counts.flatMap(([title, values]) => {
    const own = values[number];
    const others = new Set(values.filter((_, other) => other !== number));
    if (others.has(own) || others.size === 0) return [];
    return [`≠ ${own} ${one(title, own)}, ${values.length > 2 ? "others" : "the other"} ${[...others].join(", ")}`];
  });
}
