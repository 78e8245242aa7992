"""An executed notebook converted to an HTML page: ``jupyter nbconvert --to html``."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from needs import not_here

from .notebook_tests import SHOWN
from .pages import alive, images, static
from .servers import homes

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.torch]

LIBRARIES = ("require_js_url", "mathjax_url", "mermaid_js_url", "mermaid_layout_elk_js_url", "jquery_url")
"""Addresses of libraries that nbconvert's page would load itself."""


@pytest.fixture(scope="module")
def converted(book: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page."""
    if importlib.util.find_spec("nbconvert") is None:
        not_here("nbconvert is not installed: pip install '.[dev]'")
    folder = tmp_path_factory.mktemp("converted")
    command = [sys.executable, "-m", "nbconvert", "--to", "html"]
    command += [f"--HTMLExporter.{name}=data:text/javascript," for name in LIBRARIES]
    done = subprocess.run(
        [*command, "--output-dir", str(folder), str(book)],
        env=homes(folder / "home").environment(),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder / f"{book.stem}.html"


def test_it_is_alive(standalone: Callable[..., Page], converted: Path) -> None:
    alive(standalone(converted), SHOWN)


def test_it_prints(standalone: Callable[..., Page], converted: Path) -> None:
    page = standalone(converted)
    page.emulate_media(media="print")
    for number in range(SHOWN):
        layer = static(page, number)
        assert layer.is_visible()
        assert all(images(layer))
