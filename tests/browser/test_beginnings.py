"""The first view of a large model's page: every pane shows the beginning."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from compile_lens import Capture, capture

from . import captures
from .test_first_sight import COLOURS_IN_VIEW, LIT_IN_VIEW
from .viewer import Viewer, box

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.torch]

Standalone = Callable[..., "Page"]
Open = Callable[[Capture], Viewer]


def _encoder(layers: int) -> tuple[object, object]:
    import torch
    from torch import nn

    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    return nn.TransformerEncoder(layer, layers), torch.rand(2, 16, 64)


@functools.cache
def encoder() -> Capture:
    """Return torch's own transformer, whose first layer computes values that the others use too."""
    return capture(*_encoder(5))


@functools.cache
def fast_encoder() -> Capture:
    """Return the same without gradients: each layer is one library operator, and no kernel has a source."""
    import torch

    model, x = _encoder(3)
    with torch.no_grad():
        return capture(model.eval(), x)  # type: ignore[attr-defined]


@pytest.fixture
def viewer(standalone: Standalone) -> Open:
    """Return ``viewer(capture)``, which opens the capture's saved page and waits for its initial view."""

    def opened(shown: Capture) -> Viewer:
        page = Viewer(standalone(shown), shown)
        page.opened()
        return page

    return opened


@pytest.mark.parametrize("viewport", [(1280, 720)])
@pytest.mark.parametrize("made", [encoder, fast_encoder])
def test_every_pane_of_a_transformer_opens_at_the_beginning(
    viewer: Open, made: Callable[[], Capture], viewport: tuple[int, int]
) -> None:
    page = viewer(made())
    seen: dict[str, list[str]] = page.app.evaluate(COLOURS_IN_VIEW)
    assert set(seen["source"]) & set(seen["graph"]) & set(seen["code"]), seen
    graph, code = page.find(".graph-view"), page.find(".code-pane")
    assert graph.evaluate("e => e.scrollTop") == 0
    # The middle of the graph shows a node, not empty space.
    view = box(graph)
    faces = [box(one) for one in page.find(".node:not(.open) > .graph-stop > .face:not(.back)").all()]
    middle = view["x"] + view["width"] / 2
    inside = [f for f in faces if view["y"] <= f["y"] < view["y"] + view["height"] - 30]
    assert len([f for f in inside if f["x"] < middle < f["x"] + f["width"]]) >= 2
    # The list of launches is scrolled to its beginning, and the open kernel is in view in it.
    strip = box(code.locator(".code-launches"))
    rows = sorted((box(row) for row in code.locator(".code-tab:visible").all()), key=lambda row: row["y"])
    top = next(i for i, row in enumerate(rows) if row["y"] >= strip["y"] - 15)
    assert top <= 4 and rows[:8][-1]["y"] < strip["y"] + strip["height"]
    opened = code.locator(".code-tab[aria-selected=true]")
    if opened.count():
        row = box(opened)
        assert strip["y"] <= row["y"] and row["y"] + row["height"] <= strip["y"] + strip["height"]
    # The first source line that computes is in view, near the top of its pane.
    source = box(page.pane("python"))
    first = box(page.find(".source-pane :is(.listing-number.coloured, .call[role=button])").first)
    assert source["y"] < first["y"] < source["y"] + 0.6 * source["height"]


@pytest.mark.parametrize("viewport", [(1280, 720)])
def test_the_first_layer_is_open_though_it_makes_what_the_others_use(
    viewer: Open, viewport: tuple[int, int]
) -> None:
    page = viewer(encoder())
    headings = page.find(".graph-svg .heading").all_text_contents()
    assert len(headings) == 1 and headings[0].split()[0] == "layers.0"
    texts = [text for text in page.find(".graph-svg .target").all_text_contents() if text.startswith("= ")]
    assert texts and all(text.startswith(("= layers.0", "= layers.1")) for text in texts)


@pytest.mark.parametrize("viewport", [(1280, 720)])
def test_a_click_brings_every_pane_to_its_first_hit(viewer: Open, viewport: tuple[int, int]) -> None:
    page = viewer(encoder())
    tabs, list_of = page.find(".code-tab"), page.find(".code-launches")
    first = int(page.find(".code-tab[aria-selected=true] .launch-number").inner_text())

    def units(number: int) -> list[str | None]:
        parts = tabs.nth(number - 1).locator("[data-part]")
        return [part.get_attribute("data-part") for part in parts.all()]

    # The same kernel of a later layer: its origin scrolls into view beside it.
    later = next(n for n in range(first + 8, tabs.count()) if units(n) == units(first))
    tabs.nth(later - 1).click()
    page.frame()
    lit: list[list[int]] = page.app.evaluate(LIT_IN_VIEW)
    assert len(lit) == 3 and all(seen > 0 for seen, _ in lit), lit
    assert page.find(".graph-view").evaluate("e => e.scrollTop") > 0
    # A source line with several kernels, including the open one: all panes scroll to its first result.
    line = page.find(".source-pane .listing-line.coloured").first
    page.click(line)
    page.frame()
    assert len(page.pins()) == 1
    opened = page.find(".code-tab[aria-selected=true]")
    number = int(opened.locator(".launch-number").inner_text())
    tag = re.findall(r"\d+", page.pins()[0])[-1]
    with_line = [
        int(row.locator(".launch-number").inner_text())
        for row in tabs.all()
        if row.is_visible() and row.locator(f".part[title$='{tag}']").count()
    ]
    assert number == min(with_line) <= first
    row, strip = box(opened), box(list_of)
    assert strip["y"] <= row["y"] and row["y"] + row["height"] <= strip["y"] + strip["height"]
    lit = page.app.evaluate(LIT_IN_VIEW)
    assert len(lit) == 3 and all(seen > 0 for seen, _ in lit), lit
    nodes = page.find(".node.lit:not(.open) > .graph-stop > .face:not(.back)").all()
    assert min(box(node)["y"] for node in nodes) >= box(page.find(".graph-view"))["y"], "it is the first"


SIZES_OF_TEXT = """
svg => {
  const scale = svg.firstElementChild.getScreenCTM().a;
  return [...svg.querySelectorAll("text")].map((e) => parseFloat(getComputedStyle(e).fontSize) * scale);
}
"""

COVERED = """
svg => [...svg.querySelectorAll(".node > .graph-stop")].flatMap((card) => {
  const over = [...card.querySelectorAll(":scope > :is(.unit-tag, .badge)")].map((e) => e.getBBox());
  return [...card.querySelectorAll(":scope > :is(.name, .target, .small)")].filter((text) => {
    const { x, width } = text.getBBox(), y = +text.getAttribute("y");
    const size = parseFloat(getComputedStyle(text).fontSize);
    const [top, bottom] = [y - 0.74 * size, y + 0.2 * size];
    return over.some((o) => o.x < x + width && o.x + o.width > x && o.y < bottom && o.y + o.height > top);
  }).map((text) => text.textContent);
})
"""


@pytest.mark.parametrize("viewport", [(1280, 720)])
@pytest.mark.parametrize("made", [encoder, fast_encoder])
def test_words_of_a_graph_and_of_launches_are_whole(
    viewer: Open, made: Callable[[], Capture], viewport: tuple[int, int]
) -> None:
    page = viewer(made())
    svg = page.find(".graph-svg")
    assert min(svg.evaluate(SIZES_OF_TEXT)) >= 11.99
    assert svg.evaluate(COVERED) == [], "no tag covers a line of text"
    numbers = {
        str(line).rpartition(":")[2] for _, key, line in page.capture.chain.addresses() if key == "python"
    }
    for part in page.find(".launch-bar .part[data-part]").all():
        assert part.evaluate("e => e.scrollWidth <= e.clientWidth + 1")
        word = part.get_attribute("data-tag") or ""
        if word.rpartition(":")[2].isdecimal():
            assert word.rpartition(":")[2] in numbers, "the number of a line is whole"


@pytest.mark.parametrize("viewport", [(390, 844)])
def test_on_a_phone_it_opens_at_the_beginning_too(viewer: Open, viewport: tuple[int, int]) -> None:
    page = viewer(encoder())
    assert page.page.evaluate("() => scrollY") == 0
    # The graph is not visible together with the code, so it need not scroll to the open kernel's nodes.
    assert page.find(".graph-view").evaluate("e => e.scrollTop") == 0


@pytest.mark.parametrize("viewport", [(1280, 720)])
def test_what_is_too_large_to_be_drawn_whole_says_what_to_do(viewer: Open, viewport: tuple[int, int]) -> None:
    page = viewer(encoder())
    note = page.find(".graph-note")
    assert "drawn at once: double-click a box" in note.inner_text().replace("\n", " ")
    frames = page.find(".graph-frame").count()
    note.get_by_role("button", name="open all by one level").click()
    page.frame()
    assert page.find(".graph-frame").count() > frames
    note.get_by_role("button", name="find a node").click()
    assert page.find(".graph-query").evaluate("e => e === e.getRootNode().activeElement")
    assert not viewer(captures.sin_cos()).find(".graph-note").is_visible()


@pytest.mark.parametrize("viewport", [(1280, 720)])
def test_a_pinned_line_without_a_unit_keeps_the_colours_of_what_it_calls(
    viewer: Open, viewport: tuple[int, int]
) -> None:
    page = viewer(encoder())
    page.click(page.find(".source-pane .listing-line:has-text('+ self._sa_block(x, src_mask')").last)
    page.frame()
    assert len(page.pins()) == 1
    number = page.find(".source-pane .listing-number.lit-self")
    assert number.count() == 1 and "coloured" not in str(number.get_attribute("class"))
    painted = "e => /rgb/.test(getComputedStyle(e).backgroundImage)"
    assert number.evaluate(painted), "it has a bar"
    assert page.find(".code-tab.lit .part:not(.off)").count() > 0
    bars = page.find(".code-pane .listing-number.lit.coloured").all()
    assert any("unit-off" not in str(bar.get_attribute("style")) for bar in bars)
