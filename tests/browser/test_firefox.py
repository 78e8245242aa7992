"""The page in Firefox, if installed: interactive, without console errors; clicks light chains, keys and pins work."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from compile_lens import Capture
from compile_lens.views.live.compare import page as document
from compile_lens.views.live.items import Items

from . import captures
from .test_first_sight import COLOURS_IN_VIEW
from .viewer import through

if TYPE_CHECKING:
    from .firefox import Firefox

pytestmark = [pytest.mark.browser, pytest.mark.torch]

APP = "document.querySelector('.compile-lens .cl-app')"
OPENED = f"() => {APP}.shadowRoot.querySelector('.listing-number') && !{APP}.shadowRoot.querySelector('.frame-wait')"

PLACE = f"""
(selector) => {{
  const {{ left, top, height }} = {APP}.shadowRoot.querySelector(selector).getClientRects()[0];
  return [left + 6, top + height / 2];
}}
"""

LIT = f"""
() => {{
  const root = {APP}.shadowRoot;
  const of = (selector, read) => [...root.querySelectorAll(selector)].map(read);
  return {{
    calls: of(".source-pane .call.on", (e) => e.textContent),
    nodes: of(".graph-svg .node.lit", (e) => +e.dataset.item),
    lines: of(".code-pane .listing-number.lit[data-number]", (e) => +e.dataset.number),
    pins: of(".chip-name", (e) => e.textContent),
    first: of(".flow-noun", (e) => e.textContent)[0],
  }};
}}
"""


@pytest.fixture(scope="module")
def firefox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Firefox]:
    """Return the browser."""
    program = shutil.which("firefox-esr") or shutil.which("firefox")
    if program is None:
        pytest.skip("no Firefox is on PATH: install firefox-esr")
    if importlib.util.find_spec("websocket") is None:
        pytest.skip("websocket-client is not installed: pip install '.[dev]'")
    from .firefox import started

    with started(program, tmp_path_factory.mktemp("firefox")) as browser:
        yield browser


@pytest.fixture
def opened(firefox: Firefox, report: Callable[[Capture], Path]) -> Iterator[Callable[..., Firefox]]:
    """Return ``opened(capture)``, which opens a saved page or a file; the test fails if an error occurred on it."""

    def of(shown: Capture | Path, width: int = 1280, height: int = 720) -> Firefox:
        firefox.errors.clear()
        firefox.open(shown if isinstance(shown, Path) else report(shown), width, height)
        firefox.wait(OPENED)
        firefox.frame()
        return firefox

    yield of
    assert firefox.read("() => document.querySelectorAll('.cl-not-alive').length") == 0
    assert firefox.errors == []


@pytest.mark.parametrize("viewport", [(1280, 720), (820, 600)])
@pytest.mark.parametrize("made", [captures.sin_cos, captures.layer, captures.graph_break, captures.on_h100])
def test_one_colour_is_in_view_in_source_graph_and_code(
    opened: Callable[..., Firefox], made: Callable[[], Capture], viewport: tuple[int, int]
) -> None:
    page = opened(made(), *viewport)
    seen: dict[str, list[str]] = page.read(f"() => ({COLOURS_IN_VIEW})({APP})")
    assert set(seen["source"]) & set(seen["graph"]) & set(seen["code"]), seen
    top = page.read(f"() => {APP}.shadowRoot.querySelector('.frame').getBoundingClientRect().y")
    assert 60 < top <= (96 if viewport[1] > 640 else 84)


def test_a_source_that_fits_does_not_scroll(opened: Callable[..., Firefox]) -> None:
    """The page shows its lines further to the left than the file."""
    page = opened(captures.sin_cos())
    boxes = f"[...{APP}.shadowRoot.querySelectorAll('.source-pane .listing-box')]"
    wide = f"() => {boxes}.map((e) => e.scrollWidth - e.clientWidth)"
    assert page.read(wide) == [0]


def test_clicks_keys_and_pins(opened: Callable[..., Firefox]) -> None:
    shown = captures.sin_cos()
    items = Items(shown)
    page = opened(shown)

    def lit() -> Any:
        return page.read(LIT)

    page.click(*page.read(PLACE, ".call[aria-label^='call cos:']"))
    linked = through(shown, [("0/0", "dynamo", "cos")])
    (kernel,) = shown.compilations[0].code["forward"].kernels
    lines = {
        kernel.first_line + int(name.rpartition(":")[2]) - 1
        for _, key, name in linked
        if key == "forward.code" and ":" in name
    }
    forward = items.seen(0, "forward")
    assert forward is not None
    state = lit()
    assert state["calls"] == ["torch.cos(x)"]
    assert set(state["nodes"]) == {forward.item(name) for _, key, name in linked if key == "forward"}
    assert state["lines"] and set(state["lines"]) <= lines
    assert state["pins"] == ["cos"] and state["first"].startswith("line ")
    page.click(*page.read(PLACE, ".call[aria-label^='call sin:']"))
    assert lit()["pins"] == ["cos", "sin"]
    from .firefox import ESCAPE

    page.press(ESCAPE)
    assert lit() == {**state, "calls": [], "nodes": [], "lines": [], "pins": [], "first": lit()["first"]}
    page.press("/")
    focused = f"() => {APP}.shadowRoot.activeElement.className"
    assert "find-all" in page.read(focused)
    page.press(ESCAPE)


def test_a_comparison_is_lit_on_all_sides(opened: Callable[..., Firefox], tmp_path: Path) -> None:
    file = tmp_path / "compared.html"
    file.write_text(document(captures.compared()), encoding="utf-8")
    page = opened(file)
    page.click(*page.read(PLACE, ".call[aria-label^='call gelu:']"))
    columns = f"""() => [...{APP}.shadowRoot.querySelectorAll('.compare-column')].map(
      (column) => column.querySelectorAll('.listing-line.lit').length)"""
    counts = page.read(columns)
    assert len(counts) == 3 and all(counts)
