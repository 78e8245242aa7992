"""Work of a page for its visible result, as counts: times depend on the machine's other load."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from compile_lens import Capture

from . import captures
from .settling import settle
from .viewer import Viewer

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.torch]

Open = Callable[[Capture], Viewer]

READS = """
(() => {
  window.reads = 0;
  for (const name of ["clientWidth", "clientHeight", "scrollTop", "scrollLeft"]) {
    const { get, set } = Object.getOwnPropertyDescriptor(Element.prototype, name);
    Object.defineProperty(Element.prototype, name, {
      configurable: true, set, get() { window.reads += 1; return get.call(this); },
    });
  }
})();
"""
"""Counts how often the scripts query a position: each answer may lay out the page."""

KEEP = """
(app, names) => {
  const all = (selector) => [...app.shadowRoot.querySelectorAll(selector)];
  app.told = names.flatMap(([selector, name]) =>
    all(selector).map((e) => [e, name, getComputedStyle(e).getPropertyValue(name)]));
  return app.told.map(([, , value]) => value);
}
"""

CHANGED = """
app => app.told.filter(([e, name, value]) => !e.matches(".lit, .other") && getComputedStyle(e).getPropertyValue(name) !== value)
  .map(([e, name]) => `${e.getAttribute("class")} ${name}`)
"""  # noqa: E501

GROUNDS = """
app => [...app.shadowRoot.querySelectorAll(".listing-line.coloured:not(.lit), .node:not(.lit, .open) .face")].map((e) => {
  const { backgroundImage, fill } = getComputedStyle(e);
  return e.matches(".face") ? fill : backgroundImage;
})
"""  # noqa: E501


def test_the_spotlight_changes_nothing_that_is_inherited(viewer: Open) -> None:
    """A custom property that changes on a row or a node would restyle every piece of code and shape in it."""
    page = viewer(captures.layer())
    names = [[".listing-line, .listing-number", "--row"], [".listing-number", "--bar"], [".node", "--fill"]]
    names += [[".node", "--line"], [".node", "--glow"]]
    assert len(set(page.app.evaluate(KEEP, names))) > 4, "they have colours"
    page.find(".source-pane .listing-line.coloured").first.hover()
    page.frame()
    assert page.find(".shell.spot").count() == 1
    assert page.find(".node.lit").count() > 0
    assert page.app.evaluate(CHANGED) == []
    # Items that are not lit are still dimmed.
    assert set(page.app.evaluate(GROUNDS)) == {"none", page.app.evaluate(GROUND)}


LOOKS = """
app => {
  const told = (e) => {
    const own = getComputedStyle(e), before = getComputedStyle(e, "::before");
    return ["color", "backgroundImage", "backgroundColor", "borderColor", "fill", "stroke"]
      .map((name) => own[name] + before[name]).join();
  };
  app.told ??= [...app.shadowRoot.querySelectorAll(".frame *")].map((e) => [e, told(e)]);
  return app.told.filter(([e, before]) => e.isConnected && told(e) !== before).length;
}
"""
"""Number of pieces of the panes whose look has changed since the first call."""


def test_a_first_hover_styles_little_more_than_what_then_looks_otherwise(viewer: Open) -> None:
    """A spotlight rule restyles every element that it may match, also those that keep their look, as text of boxes."""
    page = viewer(captures.layer())
    page.frame()
    line = page.find(".source-pane .listing-line.coloured").nth(1)
    line.scroll_into_view_if_needed()
    page.app.evaluate(LOOKS)
    with styled(page.page) as names:
        line.hover()
        page.frame()
    assert page.find(".shell.spot").count() == 1
    otherwise = page.app.evaluate(LOOKS)
    assert otherwise > 100
    assert len(names) < 1.35 * otherwise, (len(names), otherwise)


@contextmanager
def styled(page: Page) -> Iterator[list[str]]:
    """Return the elements that a browser restyled meanwhile because of a rule, by its own count."""
    found: list[dict[str, Any]] = []
    names: list[str] = []
    ended: list[object] = []
    session = page.context.new_cdp_session(page)
    session.on("Tracing.dataCollected", lambda told: found.extend(told["value"]))
    session.on("Tracing.tracingComplete", lambda told: ended.append(told))
    kinds = ["disabled-by-default-devtools.timeline.invalidationTracking"]
    session.send("Tracing.start", {"traceConfig": {"includedCategories": kinds}})
    yield names
    session.send("Tracing.end")
    while not ended:
        page.wait_for_timeout(20)
    session.detach()
    told = [one["args"]["data"] for one in found if one["name"] == "StyleRecalcInvalidationTracking"]
    names += {
        one["nodeId"]: one["nodeName"] for one in told if one["reason"] == "Related style rule"
    }.values()


GROUND = """
app => {
  const probe = app.shadowRoot.querySelector(".shell").appendChild(document.createElement("i"));
  probe.style.color = "var(--ground)";
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
"""


def test_opening_another_pane_asks_little_of_the_page(page: Page, viewer: Open) -> None:
    """When each pane element was queried for its scroll position, there were more queries than elements."""
    page.add_init_script(READS)
    shown = viewer(captures.layer())
    shown.frame()
    elements = shown.find(".frame *").count()
    page.evaluate("() => (reads = 0)")
    shown.app.evaluate(
        """app => [...app.shadowRoot.querySelectorAll("button.card")]
             .find((card) => card.ariaPressed === "false").click()"""
    )
    reads = page.evaluate("() => reads")
    assert elements > 1000
    assert 0 < reads < elements / 5, (reads, elements)


def test_a_kernel_that_opens_is_put_into_the_page_once(viewer: Open) -> None:
    page = viewer(captures.gpt2())
    tabs = page.find(".code-tab[aria-selected=false]")
    page.find(".code-body").evaluate(
        """body => {
          window.put = 0;
          new MutationObserver((all) => all.forEach((one) => (window.put += one.addedNodes.length)))
            .observe(body, { childList: true });
        }"""
    )
    tabs.first.click()
    page.frame()
    assert page.page.evaluate("() => put") == 1


TOUCHED = """
frame => {
  const svg = frame.querySelector(".graph-svg");
  window.touched = { sizes: 0, far: [] };
  const off = (e) => e.closest('[style*="display: none"]');
  new MutationObserver((all) => {
    for (const { target, attributeName } of all) {
      if (target === svg) touched.sizes += 1;
      else if (attributeName !== "style" && off(target)) touched.far.push(target.outerHTML.slice(0, 200));
    }
  }).observe(svg, { attributes: true, subtree: true, attributeFilter: [
    "class", "d", "height", "style", "transform", "viewBox", "width", "x", "y"] });
}
"""


def test_boxes_that_open_touch_nothing_that_is_far_and_no_size_of_the_drawing(viewer: Open) -> None:
    """A browser lays out all text of an SVG again for each of its sizes, and off-screen text comes back drawn."""
    page = viewer(captures.gpt2())
    page.open("joint")
    pane = page.pane("joint")
    opens = pane.locator(".graph-tools button", has_text="open level")
    for level in range(5):
        if opens.is_disabled():
            break
        if level == 1:
            pane.evaluate(TOUCHED)
        opens.evaluate("e => e.click()")
        page.frame()
        settle(page.page)
    assert level > 1
    # Opened while less was open, so the other elements were never created.
    assert pane.locator(".node[style*='display: none']").count() > 5
    assert pane.locator(".node").count() < 100
    assert page.page.evaluate("() => touched") == {"sizes": 0, "far": []}


@pytest.mark.parametrize("scripts", [True, False])
def test_only_where_scripts_take_over_is_the_rest_of_the_static_layer_left_for_later(
    browser: Browser, report: Callable[[Capture], object], scripts: bool
) -> None:
    context = browser.new_context(java_script_enabled=scripts)
    page = context.new_page()
    # As before the script that makes the page interactive has run.
    text = report(captures.sin_cos()).read_text(encoding="utf-8")  # type: ignore[attr-defined]
    page.set_content(text[: text.rindex("<script>")])
    values = page.locator(".cl-static > *").evaluate_all(
        "all => all.map((e) => getComputedStyle(e).contentVisibility)"
    )
    flow = page.locator(".cl-static > *").evaluate_all("all => all.findIndex((e) => e.matches('.cl-flow'))")
    assert 0 < flow < len(values) - 1
    assert set(values[: flow + 1]) == {"visible"}
    assert set(values[flow + 1 :]) == {"auto" if scripts else "visible"}
    context.close()
