"""Checks of a page that shows captures, in any host."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import CDPSession, Locator, Page

ROOT = ".compile-lens"
APP = f"{ROOT} .cl-app"
ALIVE = 15_000
"""Milliseconds within which a page must become interactive."""

_CONTRAST = """
element => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const paint = (layers) => {
    canvas.clearRect(0, 0, 1, 1);
    for (const layer of layers) { canvas.fillStyle = layer; canvas.fillRect(0, 0, 1, 1); }
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const parent = (node) => node.assignedSlot ?? node.parentElement ?? node.getRootNode().host ?? null;
  const layers = [];
  for (let at = element; at; at = parent(at)) layers.unshift(getComputedStyle(at).backgroundColor);
  layers.unshift("white");
  const luminance = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((v) => {
      const c = v / 255;
      return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const ground = luminance(paint(layers));
  const ink = luminance(paint([...layers, getComputedStyle(element).color]));
  const [dark, light] = [ground, ink].sort((a, b) => a - b);
  return { ground, contrast: (light + 0.05) / (dark + 0.05) };
}
"""

WITHOUT_PAPER = "() => document.querySelector('.compile-lens').removeAttribute('data-paper')"
"""Makes a page print as without a script."""

_IMAGES = """
async root => {
  const images = [...root.querySelectorAll("img")];
  // Not decode(): that waits for a frame, which a page that is not drawn never gets.
  const loaded = (image) => new Promise((done) => {
    // One that is far below the window waits until it is near; a printer does not.
    image.loading = "eager";
    if (image.complete) return done();
    image.addEventListener("load", done);
    image.addEventListener("error", done);
    setTimeout(done, 10000);
  });
  await Promise.all(images.map(loaded));
  return images.map((image) => image.naturalWidth);
}
"""

_KEPT = """
function (selector) {
  const kept = new Set();
  for (const node of this) {
    if (Object.hasOwn(node, "constructor")) continue;  // a prototype
    let top = node.getRootNode();
    while (top instanceof ShadowRoot) top = top.host.getRootNode();
    if (top === document) continue;
    if (top.matches && top.matches(selector)) kept.add(top);
    if (top.querySelectorAll) for (const root of top.querySelectorAll(selector)) kept.add(root);
  }
  return kept.size;
}
"""


def static(page: Page, number: int = 0) -> Locator:
    """Return the layer that needs no script, for one of the page's captures."""
    return page.locator(f"{ROOT} .cl-static").nth(number)


def alive(page: Page, count: int = 1) -> Locator:
    """Return the apps of a page, once this many captures are interactive."""
    page.wait_for_function(
        "([ended, count]) => document.querySelectorAll(ended).length >= count",
        arg=[f"{ROOT}[data-alive], {ROOT} .cl-not-alive", count],
        timeout=ALIVE,
    )
    assert page.locator(f"{ROOT} .cl-not-alive").all_inner_texts() == []
    apps = page.locator(APP)
    assert apps.count() == page.locator(ROOT).count() == count
    for number in range(count):
        assert apps.nth(number).is_visible()
        assert not static(page, number).is_visible(), "one layer stands for the other"
    return apps


def search_box(app: Locator) -> Locator:
    """Return an app's first search field."""
    return app.locator("input[type=search]:visible").first


def images(layer: Locator) -> list[int]:
    """Return the natural width of each picture in pixels; 0 for a broken one."""
    widths: list[int] = layer.evaluate(_IMAGES)
    return widths


def contrast(element: Locator) -> float:
    """Return the WCAG contrast of an element's text with its background; it must be at least 4.5."""
    return float(element.evaluate(_CONTRAST)["contrast"])


def is_dark(element: Locator) -> bool:
    """Return True if an element has a dark background."""
    return float(element.evaluate(_CONTRAST)["ground"]) < 0.18


class Heap:
    """Counts objects in the page's memory after a garbage collection."""

    def __init__(self, page: Page) -> None:
        self._session: CDPSession = page.context.new_cdp_session(page)

    def kept(self) -> int:
        """Return the number of capture roots that are detached from the document but still in memory."""
        group = {"objectGroup": "kept"}
        send = self._session.send
        # Elements that no script references are not among its objects; a referenced one keeps its whole tree alive.
        kind = send("Runtime.evaluate", {"expression": "Node.prototype", **group})["result"]["objectId"]
        roots = send("Runtime.queryObjects", {"prototypeObjectId": kind, **group})["objects"]["objectId"]
        call = {"functionDeclaration": _KEPT, "arguments": [{"value": ROOT}], "returnByValue": True}
        answer = send("Runtime.callFunctionOn", {"objectId": roots, **call})
        send("Runtime.releaseObjectGroup", group)
        assert "exceptionDetails" not in answer, answer
        return int(answer["result"]["value"])

    def nodes(self) -> int:
        """Return the number of nodes of the page, shown or not."""
        for _ in range(2):
            self._session.send("HeapProfiler.collectGarbage")
        return int(self._session.send("Memory.getDOMCounters")["nodes"])
