// What one gives to others: the link, a picture of the graph that is shown, and Markdown for an issue.

import { button, copied, h, put } from "../dom.js";

/** @import { PageOfCapture } from "../code/additions.js" */

/** Properties of style that a picture outside of the page has to bring along. */
const STYLES = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "stroke-linejoin",
  "opacity",
  "display",
  "visibility",
  "font-family",
  "font-size",
  "font-weight",
  "text-anchor",
  "paint-order",
];

/** Blank ground around a picture; pixels of a long side of a picture of pixels at most, and of one of the drawing. */
const MARGIN = 12;
const [LONGEST, DENSE] = [8192, 2];

/** Milliseconds for which a button says what it did. */
const REST = 1500;

/**
 * A row of buttons.
 * @param {PageOfCapture} page
 */
export function shareRow(page) {
  const { model, say } = page.app;
  const name = model.core.function.replace(/\W+/g, "-").replace(/^-|-$/g, "") || "capture";
  const link = () => [location.href.split("#")[0], page.hash()].filter(Boolean).join("#");
  const graph = () => {
    const shown = page.panes.shown.find(({ pane, element }) => pane?.drawing && element.checkVisibility());
    shown?.pane?.drawing?.complete();
    return shown?.pane?.drawing?.element;
  };
  /**
   * @param {string} words
   * @param {string} label
   * @param {(own: HTMLElement) => Promise<string>} act what was done, in a word
   */
  const one = (words, label, act) => {
    const own = button(words, () => void tell(), { label });
    const tell = async () => {
      const done = await act(own);
      say(done);
      put(own, done);
      setTimeout(() => put(own, words), REST);
    };
    return own;
  };
  const copy = async (/** @type {string} */ text, /** @type {HTMLElement} */ own) =>
    (await copied(text, own)) ? "copied" : "refused";
  const picture = async (/** @type {(svg: SVGSVGElement) => Promise<void>} */ save) => {
    const svg = graph();
    if (!svg) return "no graph is open";
    await save(portable(svg));
    return "saved";
  };
  return h(
    "p",
    { class: "about-share" },
    h("b", {}, "Share "),
    page.standalone ? one("link", "copy the link to what is shown", (own) => copy(link(), own)) : null,
    one("Markdown", "copy a summary for an issue", async (own) => copy(await model.payload.get("issue"), own)),
    one("SVG", "save the graph that is shown as a drawing", () =>
      picture(async (svg) => save(`${name}.svg`, new Blob([textOf(svg)], { type: "image/svg+xml" }))),
    ),
    one("PNG", "save the graph that is shown as a picture", () =>
      picture(async (svg) => save(`${name}.png`, await pixels(svg))),
    ),
  );
}

/**
 * A drawing that stands by itself: with the styles that the page gives it, and as large as it is.
 * @param {SVGSVGElement} drawn
 */
function portable(drawn) {
  const svg = /** @type {SVGSVGElement} */ (drawn.cloneNode(true));
  const own = [drawn, ...drawn.querySelectorAll("*")];
  [svg, ...svg.querySelectorAll("*")].forEach((element, i) => {
    const style = getComputedStyle(own[i]);
    const said = STYLES.map((property) => `${property}:${style.getPropertyValue(property)}`).join(";");
    element.setAttribute("style", said);
    for (const name of ["class", "tabindex", "role", "aria-pressed", "aria-label"]) element.removeAttribute(name);
  });
  const ground = /** @type {SVGGElement} */ (drawn.firstElementChild);
  svg.firstElementChild?.removeAttribute("transform");
  const { x, y, width, height } = ground.getBBox();
  const size = [x - MARGIN, y - MARGIN, width + 2 * MARGIN, height + 2 * MARGIN].map(Math.round);
  svg.setAttribute("viewBox", size.join(" "));
  svg.setAttribute("width", String(size[2]));
  svg.setAttribute("height", String(size[3]));
  const paper = document.createElementNS(svg.namespaceURI, "rect");
  ["x", "y", "width", "height"].forEach((side, i) => paper.setAttribute(side, String(size[i])));
  paper.setAttribute("fill", paperOf(drawn));
  svg.prepend(paper);
  return svg;
}

/** The colour of the ground that a drawing stands on. @param {Element | null} element */
function paperOf(element) {
  for (let around = element; around; around = around.parentElement) {
    const colour = getComputedStyle(around).backgroundColor;
    if (!/^rgba\(.*, 0\)$|^transparent$/.test(colour)) return colour;
  }
  return "Canvas";
}

/** @param {SVGSVGElement} svg */
function textOf(svg) {
  return new XMLSerializer().serializeToString(svg);
}

/** @param {SVGSVGElement} svg @returns {Promise<Blob>} */
async function pixels(svg) {
  const [width, height] = ["width", "height"].map((side) => Number(svg.getAttribute(side)));
  const scale = Math.min(DENSE, LONGEST / width, LONGEST / height);
  const image = new Image(Math.round(width * scale), Math.round(height * scale));
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(textOf(svg))}`;
  await image.decode();
  const canvas = h("canvas", { width: image.width, height: image.height });
  canvas.getContext("2d")?.drawImage(image, 0, 0, image.width, image.height);
  return new Promise((resolve, reject) =>
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the picture is too large")))),
  );
}

/** @param {string} name @param {Blob} blob */
function save(name, blob) {
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
