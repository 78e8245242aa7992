"""Slides and hand-outs as a browser shows and prints them: every page is complete, a hand-out is one page."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

TUTORIALS = Path(__file__).resolve().parents[2] / "tutorials"
sys.path.insert(0, str(TUTORIALS))

pytest.importorskip("jupyter_cache", reason="jupyter-cache is not installed: pip install '.[docs]'")

import lecture  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.slow]

CUT = """\
[...document.querySelectorAll("section")].flatMap((page, number) => {
  const box = page.querySelector("main") || page;
  const over = [page, box, ...box.querySelectorAll("pre, .text, .lead, .drawing")].some(
    part => part.scrollHeight > part.clientHeight + 2 || part.scrollWidth > part.clientWidth + 2);
  const small = Number(getComputedStyle(page).getPropertyValue("--fit") || 1) < 0.7;
  return over || small ? [number + 1] : [];
})"""
"""Numbers of the pages with truncated or illegibly small content."""


def printed(page: Page) -> list[bytes]:
    """Return the page boxes of its PDF."""
    pdf = page.pdf(prefer_css_page_size=True, print_background=True)
    assert len(re.findall(rb"/Type /Page\b", pdf)) == len(re.findall(rb"/MediaBox \[[^\]]+\]", pdf))
    return re.findall(rb"/MediaBox \[([^\]]+)\]", pdf)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with the outputs of a lesson, so that it runs once."""
    return tmp_path_factory.mktemp("outputs")


@pytest.mark.parametrize("language", ["en", pytest.param("zh", marks=pytest.mark.exhaustive)])
def test_nothing_is_cut_and_a_hand_out_is_one_page(
    browser: Browser, outputs: Path, tmp_path: Path, language: str
) -> None:
    folder = TUTORIALS / "zh" if language == "zh" else TUTORIALS
    one = lecture.executed(folder / "01-one-line-four-stages.ipynb", language, outputs)
    for path in (path for path in lecture.write(one, tmp_path) if path.suffix == ".html"):
        page = browser.new_page(viewport={"width": 1280, "height": 720})
        page.goto(path.as_uri())
        assert page.evaluate(CUT) == []
        page.emulate_media(media="print")
        assert page.evaluate(CUT) == []
        boxes = printed(page)
        assert len(boxes) == page.locator("section").count()
        if path.parent.name == "slides":
            assert len(boxes) > 20 and {*boxes} == {b"0 0 960 540"}
            assert page.locator("svg").count() == 4
        else:
            assert len(boxes) == 1 and boxes[0].startswith(b"0 0 59") and b" 84" in boxes[0]  # A4 in points
        if path.parent.name == "handouts":
            assert page.locator(".notes").bounding_box()["height"] >= 100  # type: ignore[index]
        page.close()


def test_a_key_moves_from_slide_to_slide(browser: Browser, outputs: Path, tmp_path: Path) -> None:
    one = lecture.executed(TUTORIALS / "01-one-line-four-stages.ipynb", "en", outputs)
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    page.goto(lecture.write(one, tmp_path)[0].as_uri())
    place = "document.querySelectorAll('section')[{}].getBoundingClientRect().top"
    for key, number in (("ArrowRight", 1), (" ", 2), ("ArrowLeft", 1)):
        page.keyboard.press(key)
        page.wait_for_function(f"Math.abs({place.format(number)}) < 2")
    page.close()
