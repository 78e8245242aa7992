"""A Chromium for the tests, a fresh page for each, and notebook servers, all of which end with this folder.

The browser is an installed one (``COMPILE_LENS_CHROMIUM`` names it, else it is found on PATH):
nothing is downloaded. If the browser or Playwright is missing, the tests are skipped, or fail with
``COMPILE_LENS_BROWSER=required``.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from needs import not_here

from compile_lens import Capture

from . import captures
from .notebooks import cell, executed
from .servers import Server, homes, started
from .settling import SCRIPT
from .viewer import Viewer
from .watch import Watch

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

if importlib.util.find_spec("torch") is None:
    collect_ignore_glob = ["test_*.py"]

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
NAMES = ("chromium", "chromium-browser", "google-chrome")

SHOW = """\
import torch
import compile_lens


def f(x):
    return torch.sin(x) ** 2 + torch.cos(x) ** 2


capture = compile_lens.show(f, torch.rand(1000, requires_grad=True))"""

# The fixtures below last for this folder, not for the session: while Playwright runs, an event loop runs
# in this thread, and it must not affect tests in other folders.


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Return the browser."""
    if importlib.util.find_spec("playwright") is None:
        not_here("Playwright is not installed: pip install '.[dev]'")
    named = os.environ.get("COMPILE_LENS_CHROMIUM", "")
    path = named or next(filter(None, map(shutil.which, NAMES)), "")
    if not Path(path).is_file():
        not_here(
            f"COMPILE_LENS_CHROMIUM names no file: {named}"
            if named
            else "no Chromium is on PATH: install chromium, or name one in COMPILE_LENS_CHROMIUM"
        )
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield launched
        launched.close()


@pytest.fixture
def colour_scheme() -> str:
    """Return the colour scheme that the system prefers: parametrise it with ``light`` and ``dark``."""
    return "light"


@pytest.fixture
def viewport() -> tuple[int, int]:
    """Return width and height of the page in CSS pixels: parametrise it where they matter."""
    return 1280, 900


@pytest.fixture
def context(browser: Browser, colour_scheme: str, viewport: tuple[int, int]) -> Iterator[BrowserContext]:
    """Return a browser context without history: no cookies, no storage."""
    width, height = viewport
    fresh = browser.new_context(
        color_scheme="dark" if colour_scheme == "dark" else "light",
        viewport={"width": width, "height": height},
        locale="en-US",
    )
    fresh.add_init_script(SCRIPT)
    yield fresh
    fresh.close()


@pytest.fixture
def watch() -> Watch:
    """Record the messages and requests of the test's pages; they are checked when the test ends."""
    return Watch()


@pytest.fixture
def page(context: BrowserContext, watch: Watch) -> Iterator[Page]:
    """Return an empty page. It must end without errors, and without requests to places that are not allowed."""
    tab = context.new_page()
    watch.follow(tab)
    yield tab
    watch.settle(tab)
    assert watch.problems() == []
    assert watch.outside() == []


@pytest.fixture(scope="package")
def report(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Capture], Path]:
    """Return ``report(capture)``, which saves the capture's page; the same capture is saved once."""
    folder = tmp_path_factory.mktemp("reports")
    saved: dict[int, tuple[Capture, Path]] = {}  # keeps the capture alive, so that its id is not reused

    def of(capture: Capture) -> Path:
        if id(capture) not in saved:
            saved[id(capture)] = (capture, capture.save(folder / f"report-{len(saved)}.html"))
        return saved[id(capture)][1]

    return of


@pytest.fixture
def standalone(
    page: Page, watch: Watch, report: Callable[[Capture], Path], tmp_path: Path
) -> Callable[..., Page]:
    """Return ``standalone(capture)``, which opens the capture's saved page; HTML text or a path is accepted too.

    ``fragment`` is the part of the address after ``#``.
    """

    def opened(shown: Capture | str | Path, fragment: str = "") -> Page:
        if isinstance(shown, Capture):
            file = report(shown)
        elif isinstance(shown, Path):
            file = shown
        else:
            file = tmp_path / "page.html"
            file.write_text(shown, encoding="utf-8")
        watch.allow(file.as_uri())
        page.goto(file.as_uri() + (f"#{fragment}" if fragment else ""))
        return page

    return opened


@pytest.fixture
def viewer(standalone: Callable[..., Page]) -> Callable[[Capture], Viewer]:
    """Return ``viewer(capture)``, which opens the capture's saved page."""
    return lambda shown: Viewer(standalone(shown), shown)


@pytest.fixture(scope="package")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an executed notebook: its first cell compiles a function and shows it, two more show saved captures."""
    _need("ipykernel", "nbformat", "nbclient")
    place = homes(tmp_path_factory.mktemp("book"))
    cells = [
        SHOW,
        cell(captures.sin_cos(), place.top / "a.json"),
        cell(captures.softmax(), place.top / "b.json"),
    ]
    return executed(cells, place)


@pytest.fixture(scope="package")
def jupyterlab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Return JupyterLab, with an empty configuration and a real kernel."""
    yield from _server("jupyterlab", tmp_path_factory)


@pytest.fixture(scope="package")
def nbclassic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Return the classic notebook, with an empty configuration and a real kernel."""
    yield from _server("nbclassic", tmp_path_factory)


def _server(app: str, factory: pytest.TempPathFactory) -> Iterator[Server]:
    _need(app, "ipykernel", "nbformat", "nbclient")
    with started(app, homes(factory.mktemp(app))) as server:
        yield server


def _need(*modules: str) -> None:
    for module in modules:
        if importlib.util.find_spec(module) is None:
            not_here(f"{module} is not installed: pip install '.[dev]'")
