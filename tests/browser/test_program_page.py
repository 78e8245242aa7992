"""The page of a program: Find, keys, and an address that restores the selection."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from samples_program import program

from compile_lens.views.live.program import page as page_of

from .pages import contrast

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

Standalone = Callable[..., "Page"]


def test_find_counts_in_all_of_the_page_and_closes_what_it_opened(standalone: Standalone) -> None:
    page = standalone(page_of(program()))
    texts = page.locator(".cl-static").evaluate("e => e.textContent")
    page.keyboard.press("/")
    page.keyboard.type("Compiled")
    count = page.locator(".cl-count")
    total = texts.lower().count("compiled")
    assert count.inner_text() == f"1 of {total}"
    for _ in range(total - 1):
        page.keyboard.press("Enter")
    assert count.inner_text() == f"{total} of {total}"
    assert page.locator("details[open]").count()
    page.keyboard.press("Escape")
    assert not page.locator("details[open]").count() and count.inner_text() == ""
    page.keyboard.press("/")
    page.keyboard.type("nowhere at all")
    assert count.inner_text() == "0 in the page"


def test_keys_select_causes_and_the_address_remembers_them(standalone: Standalone) -> None:
    page = standalone(page_of(program()))
    causes = page.locator(".cl-first .cl-cause")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    assert page.url.endswith("#cause=1")
    assert page.evaluate("document.activeElement.matches('.cl-cause[data-on]')")
    for _ in range(causes.count() + 2):
        page.keyboard.press("j")
    last = causes.count()
    page.locator("details > summary").first.click()
    page.wait_for_url("**open=*")  # the fold fires its event in its own task
    page.reload()
    assert page.locator("[data-on]").count() == 1
    assert causes.nth(last - 1).get_attribute("data-on") is not None
    assert page.locator("details").first.get_attribute("open") is not None
    page.keyboard.press("Escape")
    assert not page.locator("[data-on]").count()
    page.keyboard.press("?")
    assert page.locator(".cl-keys").is_visible()


@pytest.mark.parametrize("colour_scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [(1280, 720), (820, 600), (390, 844)])
def test_the_bar_is_read_and_nothing_is_cut(
    standalone: Standalone, colour_scheme: str, viewport: tuple[int, int]
) -> None:
    page = standalone(page_of(program()))
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.keyboard.press("j")
    page.keyboard.press("?")
    for word in page.locator(".cl-bar button, .cl-keys, [data-on] div, [data-on] span").all():
        assert contrast(word) >= 4.5, word.inner_text()
    assert page.locator(".cl-bar").bounding_box()["height"] < 130  # type: ignore[index]


def test_a_compilation_links_to_the_page_of_its_capture(standalone: Standalone) -> None:
    ids = [graph.id for graph in program().graphs]
    page = standalone(page_of(program(), {ids[0]: "a page #1.html"}, ["</script> is a note"]))
    links = page.locator(".cl-compilations td a")
    assert set(json.loads(json.dumps(links.all_text_contents()))) == {ids[0]}
    assert links.first.get_attribute("href") == "a%20page%20%231.html"
    assert "</script> is a note" in page.locator(".cl-static").evaluate("e => e.textContent")
