"""The slider of a series, in a page without a kernel."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

import compile_lens
from compile_lens import course

from .watch import Watch

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.torch, pytest.mark.full]


def test_a_slider_changes_graph_code_and_counts(page: Page, watch: Watch, tmp_path: Path) -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x) + torch.cos(x)

    series = course.series("numbers", {n: compile_lens.capture(f, torch.rand(n)) for n in (15, 16, 33)})
    file = tmp_path / "series.html"
    cell = series._repr_mimebundle_()["text/html"]
    file.write_text(f'<!doctype html><meta charset="utf-8"><body>{cell}', encoding="utf-8")
    watch.allow(file.as_uri())
    page.goto(file.as_uri())

    def shows(words: str) -> None:
        page.locator(".series .page:not(.page-waits) .graph-view", has_text=words).first.wait_for()

    shows("f32[15]")
    assert page.locator(".cl-static").is_hidden()
    for width, height in ((1280, 1600), (390, 1000), (1280, 600)):
        page.set_viewport_size({"width": width, "height": height})
        whole, settings, side = (
            page.locator(one).bounding_box() for one in (".compile-lens", ".settings", ".side-page")
        )
        assert whole and settings and side
        assert settings["y"] - whole["y"] < 10, "the slider is at the top"
        assert 0 <= side["y"] - settings["y"] - settings["height"] < 10, "the page is right below it"
        assert 0 <= whole["y"] + whole["height"] - side["y"] - side["height"] < 10, "and fills the rest"
        assert side["height"] > 500 and side["width"] > width - 40
    slider = page.get_by_label("numbers")
    slider.focus()
    page.keyboard.press("End")
    shows("f32[33]")
    assert page.inner_text(".setting output") == slider.get_attribute("aria-valuetext") == "33"
    page.locator(".page .code-pane, .page .listing", has_text="33").first.wait_for()
    page.keyboard.press("ArrowLeft")
    shows("f32[16]")
    box = slider.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 3, box["y"] + box["height"] / 2)
    shows("f32[15]")
