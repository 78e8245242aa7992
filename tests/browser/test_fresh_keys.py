"""Keys on a page without a previous click, after Back, and out of the search fields."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compile_lens import diff

from . import captures
from .keys import Keys
from .pages import alive
from .settling import settle
from .viewer import Viewer

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.torch]

Standalone = Callable[..., "Page"]


def _pressed(page: Page) -> str:
    """Return the selected phase of a page with one app."""
    return page.locator(".flow-phase[aria-pressed=true] .flow-count").inner_text()


def _on_body(page: Page) -> bool:
    return bool(page.evaluate("document.activeElement === document.body"))


def test_a_saved_page_hears_keys_before_any_click(standalone: Standalone) -> None:
    capture = captures.sin_cos()
    page = standalone(capture)
    viewer, keys = Viewer(page, capture), Keys(page)
    assert _on_body(page) and _pressed(page) == "forward"
    keys.press("b")
    assert _pressed(page) == "backward"
    page.evaluate("document.activeElement.blur()")
    keys.press("f")
    assert _pressed(page) == "forward"
    page.evaluate("document.activeElement.blur()")
    keys.press("w")
    viewer.find(".finding").first.wait_for()
    assert _on_body(page)
    keys.press("/")
    assert keys.attribute("class") == "find-all"


def test_a_difference_hears_keys_before_any_click(page: Page, standalone: Standalone, tmp_path: Path) -> None:
    saved = diff(captures.sin_cos(), captures.sin_cos()).save(tmp_path / "difference.html")
    standalone(saved)
    page.locator(".flow-phase").first.wait_for()
    keys = Keys(page)
    assert _on_body(page)
    keys.press("b")
    assert _pressed(page).endswith("backward")
    page.evaluate("document.activeElement.blur()")
    keys.press("/")
    assert keys.attribute("class") == "find-all"
    keys.press("Escape")
    assert keys.attribute("aria-pressed") == "true", "the phase that is shown"


def test_keys_are_heard_after_back(standalone: Standalone) -> None:
    capture = captures.sin_cos()
    page = standalone(capture)
    viewer, keys = Viewer(page, capture), Keys(page)
    settle(page)
    viewer.find(".listing-line[data-item]").first.click()
    assert viewer.pins()
    page.wait_for_function("() => location.hash !== ''")
    page.go_back()
    page.wait_for_function("() => location.hash === ''")
    viewer.frame()
    assert viewer.pins() == []
    keys.press("b")
    assert _pressed(page) == "backward"


def test_escape_empties_the_field_and_then_leaves_it(standalone: Standalone) -> None:
    capture = captures.sin_cos()
    page = standalone(capture)
    viewer, keys = Viewer(page, capture), Keys(page)
    viewer.find(".listing-line[data-item]").first.click()
    chip = keys.to(".flow-noun", "Shift+Tab")
    pinned = viewer.pins()
    assert pinned
    keys.press("/")
    page.keyboard.type("sin")
    assert viewer.find(".find-all").input_value() == "sin"
    keys.press("Escape")
    assert viewer.find(".find-all").input_value() == "" and keys.attribute("class") == "find-all"
    keys.press("Escape")
    assert keys.focused().evaluate("(e, chip) => e === chip", chip), "where it was before"
    assert viewer.pins() == pinned, "a pin is not what was left"
    keys.press("Escape")
    assert viewer.pins() == []
    # The field of a pane leads to its text.
    viewer.open("forward.code")
    field = viewer.pane("forward.code").locator(".finder-input")
    field.click()
    keys.press("Escape")
    assert keys.attribute("data-row")


def test_a_find_that_nothing_had_the_focus_before_leads_into_the_page(standalone: Standalone) -> None:
    page = standalone(captures.sin_cos())
    alive(page)
    keys = Keys(page)
    keys.press("/", "Escape")
    assert (keys.attribute("class") or "").startswith("flow-phase")
    keys.press("b")
    assert _pressed(page) == "backward"


def test_a_notebooks_keys_are_its_own(standalone: Standalone) -> None:
    """A fragment in another page behaves as in a cell: it reacts only to keys pressed inside it."""
    from compile_lens.views.live.page import fragment

    page = standalone(
        f"<!doctype html><title>cell</title><button id=own>own</button>{fragment(captures.sin_cos())}"
    )
    page.locator(".compile-lens[data-alive]").wait_for()
    keys = Keys(page)
    for _ in ("nothing has the focus", "the notebook has"):
        keys.press("b")
        assert _pressed(page) == "forward"
        keys.press("/")
        assert not page.evaluate("document.activeElement.matches('.cl-app')")
        page.locator("#own").focus()
    page.locator(".flow-phase").first.focus()
    keys.press("b")
    assert _pressed(page) == "backward"
