// Finds a text in all of a page, also in what is folded.

const BLOCKS = "div,p,td,th,tr,pre,summary,h1,details";

/** @param {HTMLElement} root */
export function search(root) {
  /** @type {{ node: Text, from: number }[]} */
  const places = [];
  let text = "";
  /** @type {Range[]} */
  let matches = [];
  let current = -1;
  /** @type {Set<HTMLDetailsElement>} */
  const opened = new Set();

  /** Reads the page once: the text of inline elements runs on, that of blocks does not. */
  function read() {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    let block = null;
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const own = node.parentElement?.closest(BLOCKS) ?? null;
      if (node.parentElement?.closest("style,script")) continue;
      if (own !== block) text += "\n";
      block = own;
      places.push({ node: /** @type {Text} */ (node), from: text.length });
      text += /** @type {Text} */ (node).data.toLowerCase();
    }
  }

  /** The node and offset of a place in the text. @param {number} at @returns {[Text, number]} */
  function point(at) {
    let low = 0;
    for (let high = places.length - 1; low < high;) {
      const middle = (low + high + 1) >> 1;
      if (places[middle].from <= at) low = middle;
      else high = middle - 1;
    }
    const { node, from } = places[low];
    return [node, Math.min(at - from, node.length)];
  }

  function paint() {
    if (typeof Highlight === "undefined") return;
    CSS.highlights.set("cl-find", new Highlight(...matches));
    const one = matches[current];
    CSS.highlights.set("cl-current", one ? new Highlight(one) : new Highlight());
  }

  /** Shows the current match: opens the folds that it stands in. */
  function show() {
    const match = matches[current];
    if (!match) return;
    const at = match.startContainer.parentElement;
    for (let fold = at?.closest("details"); fold; fold = fold.parentElement?.closest("details"))
      if (!fold.open) {
        fold.open = true;
        opened.add(fold);
      }
    at?.scrollIntoView({ block: "center" });
    paint();
  }

  function close() {
    for (const fold of opened) fold.open = false;
    opened.clear();
  }

  const said = () => (matches.length ? `${current + 1} of ${matches.length}` : "0 in the page");

  return {
    /** Goes to the first match; how many there are. @param {string} wanted */
    find(wanted) {
      if (!text) read();
      close();
      matches = [];
      const low = wanted.toLowerCase();
      for (let at = text.indexOf(low); at >= 0; at = text.indexOf(low, at + low.length)) {
        const range = document.createRange();
        range.setStart(...point(at));
        range.setEnd(...point(at + low.length - 1));
        range.setEnd(range.endContainer, range.endOffset + 1);
        matches.push(range);
      }
      current = matches.length ? 0 : -1;
      paint();
      show();
      return said();
    },
    /** Goes to another match. @param {number} by */
    step(by) {
      if (matches.length) {
        current = (current + by + matches.length) % matches.length;
        show();
      }
      return said();
    },
    clear() {
      matches = [];
      current = -1;
      close();
      paint();
    },
  };
}
