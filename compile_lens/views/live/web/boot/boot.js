// The only code that a page runs as it stands: finds its own page, unpacks the script beside it and starts that.

const own = document.currentScript;
// Some hosts run scripts from a place of their own: then it is the first page that has not been started.
const waiting = () =>
  [...document.querySelectorAll(".compile-lens")].find(
    (r) => !r.hasAttribute("data-started") && r.querySelector(".cl-data"),
  );
const root = (own && own.closest(".compile-lens")) || waiting();

/**
 * A text of the page's data as it was before it was packed, in base 91: see based() in parts.py.
 * @param {string} text
 */
async function unpack(text) {
  const values = new Uint8Array(128);
  for (let code = 33, value = 0; code < 127; code++)
    if (!'"<\\'.includes(String.fromCharCode(code))) values[code] = value++;
  const { length } = text;
  const bytes = new Uint8Array(((length >> 1) * 13 + (length % 2) * 6) >> 3);
  let word = 0;
  for (let i = 0, at = 0, bits = 0; i < length;) {
    let value = values[text.charCodeAt(i++)];
    const wide = i < length;
    if (wide) value += 91 * values[text.charCodeAt(i++)];
    const more = wide ? 13 : 6;
    word = (word << more) | value;
    for (bits += more; bits > 7;) bytes[at++] = word >> (bits -= 8);
  }
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).text();
}

/** @param {Element} page */
async function boot(page) {
  const failed = (/** @type {unknown} */ error) => {
    const message = document.createElement("div");
    message.className = "cl-not-alive";
    message.setAttribute("role", "alert");
    message.textContent = `The interactive view did not start (${error}). Below is the page as it is without it.`;
    page.prepend(message);
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
