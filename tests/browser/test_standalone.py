"""The saved report in a browser: it opens by itself, and everything in it can be read."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest
import samples_graph

from compile_lens import Capture
from compile_lens.record.compilation import Compilation

from . import captures
from .pages import ROOT, WITHOUT_PAPER, alive, contrast, images, is_dark, static
from .watch import Watch

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.torch]

Standalone = Callable[..., "Page"]
EACH = pytest.mark.parametrize("made", captures.EVERY.values(), ids=captures.EVERY)


@EACH
@pytest.mark.cases(full=2)
def test_a_page_opens(standalone: Standalone, made: Callable[[], Capture]) -> None:
    """No user string becomes an element. Errors, dialogs and requests are checked after each test."""
    page = standalone(made())
    alive(page)
    assert page.title().endswith(" · compile_lens")
    assert page.locator(f"{ROOT} img:not([src^='data:image/svg+xml'])").count() == 0
    assert page.locator(f"{ROOT} :is(iframe, object, embed, link, base, form)").count() == 0
    styles = page.locator(f"{ROOT} style").evaluate_all("all => all.map(style => style.textContent).join()")
    assert "*{display:none}" not in styles


def test_the_title_says_what_it_is_about(standalone: Standalone) -> None:
    shown = captures.sin_cos()
    title = standalone(shown).title()
    for fact in (shown.function, f"torch {shown.environment.torch}", shown.environment.target):
        assert fact in title
    assert shown.created[:10] in title


def test_hostile_names_read_as_they_are(standalone: Standalone) -> None:
    read = static(standalone(captures.hostile())).evaluate("layer => layer.textContent")
    for name in ("script", "image", "quotes", "emoji", "comment", "prototype"):
        assert captures.HOSTILE[name] in read, name


@pytest.mark.parametrize("colour_scheme", ["light", "dark"])
@pytest.mark.parametrize("made", [captures.sin_cos, captures.graph_break, captures.failing])
def test_it_prints(standalone: Standalone, made: Callable[[], Capture], colour_scheme: str) -> None:
    page = standalone(made())
    alive(page)
    page.evaluate(WITHOUT_PAPER)
    page.emulate_media(media="print")
    layer = static(page)
    assert layer.is_visible()
    assert contrast(layer) >= 4.5 and not is_dark(layer), "paper is white"
    assert all(images(layer))
    cut = "all => all.filter(e => e.clientHeight && e.scrollHeight > e.clientHeight + 1).length"
    assert layer.locator(".cl-listing").evaluate_all(cut) == 0, "a listing is printed whole"


def test_it_can_be_read_without_scripts(
    browser: Browser, watch: Watch, report: Callable[[Capture], Path], request: pytest.FixtureRequest
) -> None:
    context = browser.new_context(java_script_enabled=False)
    request.addfinalizer(context.close)
    page = context.new_page()
    watch.follow(page)
    file = report(captures.sin_cos())
    watch.allow(file.as_uri())
    page.goto(file.as_uri())
    layer = static(page)
    for fold in layer.locator("details:not([open]) > summary").all():
        if fold.is_visible():
            fold.click()
    for part in (".cl-flow", "table", "img.cl-graph", "pre.cl-code"):
        assert layer.locator(part).first.is_visible(), part
    assert watch.problems() == [] and watch.outside() == []


def test_a_flat_graph_of_thousands_of_nodes_is_saved_and_opened(standalone: Standalone) -> None:
    graph = samples_graph.chain(4_998)
    shown = dataclasses.replace(
        captures.softmax(), compilations=(Compilation("0/0", "f", "f.py", 1, (graph,)),)
    )
    page = standalone(shown)
    pane = alive(page).locator(".graph-pane").first
    pane.locator(".node").first.wait_for()
    assert re.fullmatch(r"x … .+", pane.locator(".node .name").first.text_content() or "")
    drawn = unquote(static(page).locator("img.cl-graph").get_attribute("src") or "")
    text = " ".join(re.sub("<[^>]*>", " ", drawn).split())  # a caption has lines
    assert "5000 nodes are too many to draw: 5000 of them are collapsed" in text
