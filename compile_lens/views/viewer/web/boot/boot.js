// The only code that a page runs as it stands: finds its own page, unpacks the script beside it and starts that.

const own = document.currentScript;
// Some hosts run scripts from a place of their own: then it is the first page that has not been started.
const waiting = () =>
  [...document.querySelectorAll(".compile-lens")].find(
    (r) => !r.hasAttribute("data-started") && r.querySelector(".cl-data"),
  );
const root = (own && own.closest(".compile-lens")) || waiting();

// Base 85 with the signs of RFC 1924, three of them others, which HTML cannot misread: see packed() in parts.py.
const SIGNS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%,()*+-;.=:?@^_`{|}~";

/**
 * A text of the page's data as it was before it was packed.
 * @param {string} text
 */
async function unpack(text) {
  const values = new Uint8Array(128);
  for (let i = 0; i < 85; i++) values[SIGNS.charCodeAt(i)] = i;
  const words = new DataView(new ArrayBuffer(Math.ceil(text.length / 5) * 4));
  for (let i = 0, at = 0; i < text.length; at += 4) {
    let word = 0;
    for (let k = 0; k < 5; k++, i++) word = word * 85 + (i < text.length ? values[text.charCodeAt(i)] : 84);
    words.setUint32(at, word);
  }
  const bytes = new Uint8Array(words.buffer, 0, Math.floor((text.length * 4) / 5));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).text();
}

/** @param {Element} page */
async function boot(page) {
  const failed = (/** @type {unknown} */ error) => {
    const said = document.createElement("div");
    said.className = "cl-not-alive";
    said.setAttribute("role", "alert");
    said.textContent = `The interactive view did not start (${error}). Below is the page as it is without it.`;
    page.prepend(said);
  };
  try {
    const data = page.querySelector(".cl-data");
    const parts = JSON.parse((data && data.textContent) || "{}");
    const [script, style] = await Promise.all([unpack(parts.script), unpack(parts.style)]);
    // The script reads what it needs from its page and takes it away again: nothing becomes global.
    Object.assign(page, { compileLens: { parts, style, unpack, failed } });
    const element = document.createElement("script");
    element.textContent = script;
    page.append(element);
    element.remove();
  } catch (error) {
    failed(error);
  }
}

if (root && !root.hasAttribute("data-started")) {
  root.setAttribute("data-started", "");
  void boot(root);
}
