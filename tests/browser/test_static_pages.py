"""Pages of a program and of a diff without script: their first view, light, dark, wide, narrow."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
import samples_program
from samples import graph_break, sample
from samples_program import program

from compile_lens.api.load import diff
from compile_lens.views.live.compare import page as of_difference
from compile_lens.views.render.html import page as page_of
from compile_lens.views.subjects.program import document

from .pages import contrast, is_dark

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = pytest.mark.browser

PAGES = {
    "program": (lambda: page_of(document(program())), (".cl-outcome", ".cl-cause")),
    "difference": (
        # As on a page without captures that become interactive.
        lambda: of_difference(dataclasses.replace(diff(sample(), graph_break()), captures=())),
        (".cl-outcome", ".cl-note"),
    ),
}
EACH = pytest.mark.parametrize("name", PAGES)
SCHEMES = pytest.mark.parametrize("colour_scheme", ["light", "dark"])


@EACH
@SCHEMES
@pytest.mark.parametrize("viewport", [(1280, 720), (820, 600), (390, 844)])
def test_what_it_is_about_is_in_view(
    standalone: Callable[..., Page], name: str, colour_scheme: str, viewport: tuple[int, int]
) -> None:
    text, first = PAGES[name]
    page = standalone(text())
    assert page.locator("script").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing is cut at the side"
    for part in first:
        assert _bottom(page.locator(part).first) <= viewport[1], part
    root = page.locator(".cl-static")
    assert is_dark(root) == (colour_scheme == "dark")
    for word in root.locator("div, span, b, td, th, summary").all()[:60]:
        if word.is_visible() and word.evaluate(
            "e => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())"
        ):
            assert contrast(word) >= 4.5, word.inner_text()[:80]


@pytest.mark.parametrize("viewport", [(1280, 720)])
def test_lines_of_a_program_stand_beside_the_causes(
    standalone: Callable[..., Page], viewport: tuple[int, int]
) -> None:
    """The result of each line is in view beside the reasons why it is not faster, if there is room for both."""
    page = standalone(page_of(document(program())))
    source, cause = (
        page.locator(part).first.bounding_box() for part in (".cl-sources .cl-listing", ".cl-cause")
    )
    assert source is not None and cause is not None
    assert source["x"] >= cause["x"] + cause["width"] and source["y"] < viewport[1] / 2


@pytest.mark.parametrize("viewport", [(390, 844)])
def test_a_function_of_a_program_stands_under_the_name_of_its_file(
    standalone: Callable[..., Page], viewport: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder depends on the machine: it is in the tooltip."""
    monkeypatch.setattr(samples_program, "FILE", "/home/someone/train.py")
    page = standalone(page_of(document(program())))
    heads = page.locator(".cl-sources [title]")
    assert heads.all_inner_texts() == ["train.py:1", "train.py:8"]
    titles = [head.get_attribute("title") for head in heads.all()]
    assert titles == ["/home/someone/train.py:1", "/home/someone/train.py:8"]
    assert "/home/someone" not in page.locator(".cl-static").inner_text()


@EACH
@pytest.mark.parametrize("colour_scheme", ["dark"])
def test_paper_is_white(standalone: Callable[..., Page], name: str, colour_scheme: str) -> None:
    page = standalone(PAGES[name][0]())
    page.emulate_media(media="print")
    assert not is_dark(page.locator(".cl-static")) and contrast(page.locator(".cl-static div").first) >= 4.5


def _bottom(part: Locator) -> float:
    box = part.bounding_box()
    assert box is not None
    return box["y"] + box["height"]
