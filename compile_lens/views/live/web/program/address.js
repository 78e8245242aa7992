// What of the page of a program its address remembers.

/** @typedef {{ cause: number, find: string, open: string[] }} Address */

/** The part of an address behind `#`; "#" where there is nothing to remember. @param {Address} address */
export function addressOf({ cause, find, open }) {
  const words = new URLSearchParams();
  if (cause) words.set("cause", String(cause));
  if (find) words.set("find", find);
  for (const section of new Set(open)) words.append("open", section);
  return `#${words}`;
}

/** @param {string} hash @returns {Address} */
export function readAddress(hash) {
  const words = new URLSearchParams(hash.slice(1));
  const cause = Number(words.get("cause") ?? 0);
  return {
    cause: Number.isInteger(cause) && cause > 0 ? cause : 0,
    find: words.get("find") ?? "",
    open: words.getAll("open"),
  };
}
