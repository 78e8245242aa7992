"""The initial view of a deep model and of a function with breaks on small pages: complete, nothing truncated."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from compile_lens import Capture, capture

from . import captures
from .settling import settle
from .viewer import Viewer, box

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = [pytest.mark.browser, pytest.mark.torch]

Standalone = Callable[..., "Page"]
Open = Callable[[Capture], Viewer]

LAYERS = 3


@functools.cache
def deep() -> Capture:
    """Return a transformer in three classes, each of which has a function called ``forward``."""
    import torch
    from torch import nn

    class Attention(nn.Module):
        def __init__(self, width: int, heads: int) -> None:
            super().__init__()
            self.heads, self.scale = heads, (width // heads) ** -0.5
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

        def forward(self, x: Any) -> Any:
            sizes = 3, self.heads, -1
            parts = self.qkv(x).unflatten(-1, sizes)
            q, k, v = parts.permute(2, 0, 3, 1, 4)
            scores = q @ k.mT * self.scale
            found = scores.softmax(-1) @ v
            found = found.transpose(1, 2).flatten(-2)
            return self.out(found)

    class Layer(nn.Module):
        def __init__(self, width: int, heads: int) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.attention = Attention(width, heads)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x: Any) -> Any:
            x = x + self.attention(self.norm1(x))
            return x + self.mlp(self.norm2(x))

    class Deep(nn.Module):
        def __init__(self, width: int = 64, heads: int = 4) -> None:
            super().__init__()
            self.layers = nn.Sequential(*(Layer(width, heads) for _ in range(LAYERS)))
            self.head = nn.Linear(width, 100)

        def forward(self, x: Any) -> Any:
            return self.head(self.layers(x))

    # Without a backward, which takes as long again to compile.
    return capture(Deep().requires_grad_(False), torch.rand(2, 16, 64))


@pytest.fixture
def viewer(standalone: Standalone) -> Open:
    """Return ``viewer(capture)``, which opens the capture's saved page and waits for its initial view."""

    def opened(shown: Capture) -> Viewer:
        page = Viewer(standalone(shown), shown)
        page.opened()
        settle(page.page)  # whatever the initial view scrolls
        return page

    return opened


@pytest.mark.parametrize("viewport", [(1280, 720)])
@pytest.mark.exhaustive
def test_methods_go_by_their_classes_and_say_how_many_modules_ran_them(viewer: Open) -> None:
    page = viewer(deep())
    heads = page.find(".source-part > .source-head")
    names = [text.split() for text in heads.all_inner_texts()]
    assert [words[0] for words in names] == ["Deep.forward", "Layer.forward", "Attention.forward"]
    assert [f"×{LAYERS}" in words for words in names] == [False, True, True]
    title = heads.nth(1).locator(".source-ran").get_attribute("title")
    assert title == f"run by {LAYERS} modules: {', '.join(f'layers.{n}' for n in range(LAYERS))}"


@pytest.mark.parametrize("viewport", [(1920, 1080)])
def test_a_wide_page_gives_the_source_what_its_lines_need(viewer: Open) -> None:
    page = viewer(deep())
    assert len(page.shown()) == 3
    for one in page.pane("python").locator(".listing-box").all():
        assert one.evaluate("e => e.scrollWidth <= e.clientWidth"), "no line is cut"
    for other in page.shown()[1:]:
        assert box(page.find(f".frame[data-stage='{other[0]}']"))["width"] > 450


@pytest.mark.parametrize("viewport", [(1280, 720)])
def test_a_box_that_is_opened_shows_what_works_in_it(viewer: Open) -> None:
    page = viewer(deep())
    node = page.find(".graph-svg .node:not(.open)").filter(has_text="attention").first
    label = node.locator(".graph-stop").first.get_attribute("aria-label") or ""
    if "(2)" in label:
        assert "part 2 of layers.0.attention: nodes of other modules stand between its parts" in label
    name = label.split(",")[0]
    # Half out of view to the left, so that it has to scroll into view.
    moved = page.find(".graph-view").evaluate("view => { view.scrollLeft = 9999; return view.scrollLeft; }")
    assert moved > 40
    page.frame()
    face = box(node.locator(".face:not(.back)").first)
    page.page.mouse.dblclick(face["x"] + 0.8 * face["width"], face["y"] + face["height"] / 2)
    page.frame()
    settle(page.page)
    frame = page.find(".graph-svg .node.open").filter(has_text=name).last
    assert frame.count() == 1
    view, inside = box(page.find(".graph-view")), box(frame)
    faces = [box(face) for face in page.find(".node:not(.open) > .graph-stop > .face:not(.back)").all()]
    own = [f for f in faces if _within(f, inside)]
    whole = [f for f in own if view["x"] <= f["x"] and f["x"] + f["width"] <= view["x"] + view["width"] + 1]
    assert len(whole) >= 3, "some of what it holds is whole from left to right"


def _within(inner: Any, outer: Any) -> bool:
    return bool(
        outer["x"] <= inner["x"] and inner["x"] + inner["width"] <= outer["x"] + outer["width"] + 1
        and outer["y"] < inner["y"] < outer["y"] + outer["height"]
    )  # fmt: skip


@pytest.mark.parametrize("viewport", [(1280, 720)])
def test_below_a_library_call_what_happened_in_between_is_read_to_its_end(viewer: Open) -> None:
    page = viewer(deep())
    page.find('.code-tab[title^="extern_kernels."]:visible').first.click()
    page.frame()
    foot = page.find(".code-panel .code-foot")
    assert "In between" in foot.inner_text()
    assert foot.evaluate("e => e.scrollHeight <= e.clientHeight + 1")


@pytest.mark.parametrize("viewport", [(820, 600)])
def test_a_source_that_does_not_open_at_its_beginning_says_so(
    viewer: Open, viewport: tuple[int, int]
) -> None:
    scrolled = set()
    for make in (deep, captures.sin_cos):
        page = viewer(make())
        top = page.find(".source-scroll").evaluate("e => e.scrollTop")
        notes = page.find(".frame-remark:visible").all()
        assert len(notes) == (top > 0)
        for words in notes:
            assert words.inner_text() == "at the kernel's lines"
            assert words.evaluate("e => e.scrollWidth <= e.clientWidth"), "whole"
        scrolled.add(top > 0)
    assert scrolled == {True, False}


@pytest.mark.parametrize("viewport", [(390, 844)], ids=["phone"])
def test_on_a_phone_a_source_with_breaks_is_whole_with_its_table(viewer: Open) -> None:
    page = viewer(captures.graph_break())
    scroll = page.find(".source-scroll")
    assert scroll.evaluate("e => [e.scrollTop, e.scrollHeight - e.clientHeight]") == [0, 0]
    pane = box(page.pane("python"))
    for row in page.find(".compilation").all():
        assert box(row)["y"] + box(row)["height"] <= pane["y"] + pane["height"]


@pytest.mark.parametrize("viewport", [(1280, 720), (820, 600), (700, 600), (390, 844)])
def test_a_break_is_as_high_as_its_words(viewer: Open, viewport: tuple[int, int]) -> None:
    page = viewer(captures.graph_break())
    note = page.find(".listing-note.below")
    assert note.count() == 1
    row = page.find(".source-pane .listing-line:has(.listing-note)")
    below = box(row)["y"] + box(row)["height"] - box(note)["y"] - box(note)["height"]
    assert 0 <= below < 12


@pytest.mark.exhaustive
@pytest.mark.parametrize("viewport", [(1280, 720)])
def test_the_steps_between_the_stages_are_read_whole(viewer: Open) -> None:
    page = viewer(captures.recompiled())
    for number, _ in enumerate(page.capture.compilations):
        page.choose(number)
        page.frame()
        nouns = [box(one) for one in page.find(".flow-noun").all()]
        names = [_ink(one) for one in page.find(".flow-name").all()]
        for left, right in names:
            assert not any(n["x"] < right and left < n["x"] + n["width"] for n in nouns), (
                "a word touches no chip"
            )
        for one, other in itertools.pairwise(nouns):
            assert one["x"] + one["width"] <= other["x"]


def _ink(element: Locator) -> tuple[float, float]:
    """Return the start and end of an element's letters."""
    left, right = element.evaluate(
        "e => { const r = document.createRange(); r.selectNodeContents(e);"
        " const b = r.getBoundingClientRect(); return [b.left, b.right]; }"
    )
    return left, right
