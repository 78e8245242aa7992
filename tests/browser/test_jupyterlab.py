"""Captures in JupyterLab."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .notebook_tests import SHOWN, NotebookTests, NotebookUseTests
from .notebooks import Lab, placed
from .pages import alive, is_dark
from .servers import Server
from .watch import Watch

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.torch]


@pytest.fixture
def opened(page: Page, watch: Watch, jupyterlab: Server, book: Path) -> Callable[..., Lab]:
    """Return ``opened(trusted=…)``, which opens the notebook."""

    def open(*, trusted: bool) -> Lab:
        return Lab(page, watch, jupyterlab, placed(book, jupyterlab.homes, "book", trusted=trusted))

    return open


class TestJupyterLab(NotebookTests):
    """Tests of every front end."""

    @pytest.mark.parametrize(
        ("theme", "colour_scheme", "dark"),
        [("JupyterLab Dark", "light", True), ("JupyterLab Light", "dark", False)],
        ids=["dark", "light"],
    )
    def test_it_takes_the_theme_of_the_host(
        self,
        page: Page,
        opened: Callable[..., Lab],
        jupyterlab: Server,
        theme: str,
        colour_scheme: str,
        dark: bool,
    ) -> None:
        """JupyterLab's theme takes precedence over the system's preference."""
        file = jupyterlab.homes.settings / "@jupyterlab" / "apputils-extension" / "themes.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"theme": theme}), encoding="utf-8")
        try:
            opened(trusted=True)
            assert page.locator("body").get_attribute("data-jp-theme-name") == theme
            app = alive(page, SHOWN).first
            assert is_dark(app.locator("button:visible").first) is dark
        finally:
            file.unlink()


@pytest.mark.exhaustive
class TestUseOfJupyterLab(NotebookUseTests):
    """The remaining tests of every front end."""


PLAYED = """
import compile_lens, torch
compile_lens.play(lambda x: torch.sin(x).sum(-1), torch.rand(4, 8))
"""


@pytest.mark.exhaustive
def test_the_playground_in_a_cell(page: Page, watch: Watch, jupyterlab: Server) -> None:
    """The kernel answers: a slider shows another capture, and keys stay inside the widget."""
    import nbformat

    file = jupyterlab.homes.notebooks / "play.ipynb"
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(PLAYED)], metadata=kernel), file)
    lab = Lab(page, watch, jupyterlab, file)
    lab.run(0)
    page.wait_for_selector(".play[data-state=fresh]", timeout=120_000)
    page.locator(".setting input[type=range]").last.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_selector(".play[data-state=fresh]", timeout=60_000)
    page.locator(".page .listing", has_text="torch.sin(x)").first.wait_for()
    page.locator(".page .graph-view", has_text="f32[4, 9]").first.wait_for()
    page.keyboard.press("b")
    assert len(lab.cells()) == 1
