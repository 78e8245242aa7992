"""Torch versions in the playground, in a browser: the page names its version, and reports missing ones.

Their Python is the running one, so this torch answers under another version name.
"""

from __future__ import annotations

import base64
import json
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from torch_environments import environment

from compile_lens.api.playground.settings import from_link
from compile_lens.trials.environments import MARK

from .test_playground import GRAPH, TWO, opened, saved_text, served, settled, typed
from .watch import Watch

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytest.importorskip("uvicorn")
pytest.importorskip("websockets")

pytestmark = [
    pytest.mark.browser,
    pytest.mark.torch,
    pytest.mark.full,
    pytest.mark.skipif(sys.platform != "linux", reason="the folder of the environments is that of Linux"),
]

HERE = torch.__version__
SAME = HERE.partition("+")[0]
"""Name of the environment with this torch."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return environments: one with this torch, one with another than its marker names, and one whose Python exits."""
    cache = tmp_path_factory.mktemp("cache") / "compile_lens" / "environments"
    environment(cache, SAME, HERE)
    environment(cache, "2.98", "2.98.0")
    environment(cache, "2.99", "2.99.0", "exit 3;")
    return cache


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    with served(folder.parents[1]) as address:
        yield address


@pytest.fixture
def play(page: Page, watch: Watch, url: str) -> Page:
    return opened(page, watch, url)


def torches(page: Page) -> Locator:
    return page.locator(".settings label", has_text="torch").locator("select")


def link(settings: dict[str, object]) -> str:
    """Return the fragment of a link that the playground of another machine created."""
    text = json.dumps({"source": TWO, "settings": settings}).encode()
    return "#p=" + base64.urlsafe_b64encode(zlib.compress(text)).decode().rstrip("=")


def test_another_torch_by_keyboard_alone(play: Page) -> None:
    """Pins stay, the next edit is captured under that version too, and a reload keeps it."""
    typed(play, TWO)
    assert torches(play).locator("option").all_inner_texts() == [HERE, f"{HERE} ({SAME})", "2.98.0", "2.99.0"]
    play.click(".cm-lineNumbers .cm-gutterElement:text-is('5')")
    focused = "document.querySelector('main').shadowRoot.activeElement"
    play.click(".cm-content")
    play.keyboard.press("Escape")
    chosen = f"{focused}.closest('label')?.textContent.startsWith('torch')"
    for _ in range(10):
        play.keyboard.press("Shift+Tab")
        if play.evaluate(chosen):
            break
    assert play.evaluate(chosen)
    play.keyboard.press("ArrowDown")
    settled(play, "fresh")
    assert torches(play).input_value() == SAME
    assert play.inner_text(".inputs") == f"x: float32[64, 128] cpu · torch {HERE}"
    assert play.locator(".page .spot").count() == 1, "the pin"
    typed(play, TWO.replace("sin", "cosh"))
    play.locator(GRAPH, has_text="cosh").first.wait_for()
    play.get_by_role("button", name="link").click()
    play.locator(".state", has_text="link").wait_for()
    assert from_link(play.evaluate("location.href")).settings.torch == SAME
    play.reload()
    settled(play, "fresh")
    assert torches(play).input_value() == SAME and play.locator(GRAPH, has_text="cosh").count()
    torches(play).select_option("")
    assert settled(play, "fresh").startswith("up to date")


def test_two_targets_under_another_torch(play: Page, tmp_path: Path) -> None:
    typed(play, TWO)
    torches(play).select_option(SAME)
    play.locator(".settings").get_by_label("beside").select_option("h100")
    settled(play, "fresh")
    columns = play.locator(".page .compare-column")
    assert columns.locator(".frame-title").all_inner_texts() == ["this machine", "h100"]
    columns.last.locator(".listing-box", has_text="tl.load").wait_for()
    both = saved_text(play, tmp_path)
    assert "cpp_fused" in both and "triton_" in both
    play.locator(".settings").get_by_label("beside").select_option("")
    settled(play, "fresh")
    assert columns.count() == 0


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("2.98", f"has torch 2.98.0, but torch {HERE} ran"),
        ("2.99", "--remove 2.99, then compile-lens upgrade --torch 2.99"),
    ],
)
def test_no_page_of_a_broken_environment(play: Page, name: str, words: str) -> None:
    typed(play, TWO)
    torches(play).select_option(name)
    assert settled(play, "failed") == "no capture"
    assert words in play.inner_text(".fault")
    assert play.inner_text(".stale-note").startswith("Last version that compiled, 1 edit ago.")
    assert float(play.locator(".pages").evaluate("e => getComputedStyle(e).opacity")) < 0.8
    assert play.inner_text(".inputs").endswith(f"torch {HERE}"), "that of the page which is left"
    torches(play).select_option("")
    settled(play, "fresh")
    assert play.locator(".fault").count() == 0


def test_one_that_vanishes_is_said(play: Page, folder: Path) -> None:
    typed(play, TWO)
    torches(play).select_option(SAME)
    settled(play, "fresh")
    mark = next(folder.glob(f"torch-{SAME}-*")) / MARK
    text = mark.read_text()
    mark.unlink()
    typed(play, TWO.replace("sin", "cos"), "failed")
    assert f"torch='{SAME}' is not on this machine" in play.inner_text(".fault")
    mark.write_text(text)
    assert typed(play, TWO.replace("sin", "tan")).startswith("up to date")


def test_a_link_to_one_that_is_not_here_says_how_to_make_it(play: Page) -> None:
    typed(play, TWO)
    play.evaluate(f"location.hash = {json.dumps(link({'torch': '2.12', 'rows': 8}))}")
    play.locator(".stale-note").get_by_role("button", name="run").click()
    assert settled(play, "failed") == "no capture"
    assert play.inner_text(".fault").endswith("to make it: compile-lens upgrade --torch 2.12")
    assert torches(play).input_value() == "2.12"
    torches(play).select_option("")
    settled(play, "fresh")
    assert play.inner_text(".inputs") == f"x: float32[8, 128] cpu · torch {HERE}"


@pytest.mark.parametrize("viewport", [(390, 844)])
def test_on_a_phone_it_is_reached(play: Page) -> None:
    """The settings row scrolls to the choice of torch."""
    torches(play).focus()
    box = torches(play).bounding_box()
    assert box is not None and box["x"] >= 0 and box["x"] + box["width"] <= 390
    torches(play).select_option(SAME)
    settled(play, "fresh")
