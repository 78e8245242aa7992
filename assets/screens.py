"""Takes screenshots of the viewer in a Chromium, as part of ``python assets/make.py``.

Needs Playwright, a Chromium (located as in ``tests/browser``) and, for the notebook, JupyterLab.
Each subject is captured again, then made independent of the machine: no folder, no time and no date.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import json
import os
import runpy
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import png

import compile_lens
from compile_lens import Capture

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = Path(__file__).resolve().parent / "pictured"
"""Subjects of some of the pictures; others show the demo."""

# The browser and the notebook server of the tests.
sys.path += [str(ROOT / "tests"), str(ROOT / "tests" / "helpers")]

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

LARGEST = 150_000
"""Maximum bytes of a picture: everyone who reads the README downloads it."""

CELL = """\
import torch
import compile_lens


def f(x):
    return torch.sin(x) ** 2 + torch.cos(x) ** 2


compile_lens.show(f, torch.rand(1000, requires_grad=True))"""


@dataclass(frozen=True)
class Screen:
    """A picture: its subject and its size.

    ``height`` is that of the picture, ``window`` that of the browser's window, from which the panes take their size;
    the picture continues below it. ``state`` is the part of the address after ``#``, and
    ``act`` what is done on the page after that. ``needs`` is a package without which it cannot be taken.
    """

    file: str
    capture: str
    width: int
    height: int
    window: int
    state: str = ""
    dark: bool = False
    needs: str = ""
    act: Callable[[Page], None] = lambda page: None

    @property
    def size(self) -> tuple[int, int]:
        return self.width, self.height


def _two_phases(page: Page) -> None:
    _move(page, "border of forward and backward", -12)
    _move(page, "border of backward and backward code", -25)
    _move(page, "height of the panes", 70)
    _fit(page)
    _kernel(page, 300)


def _one_group(page: Page) -> None:
    _move(page, "height of the panes", 95)
    _kernel(page, 1900)


def _modules(page: Page) -> None:
    """Show equal layers, the first of them open, and the matches of a search in it and elsewhere."""
    _move(page, "border of Python source and forward", -200)
    _move(page, "height of the panes", 130)
    for _ in range(3):
        page.get_by_role("button", name="zoom out (-)").first.click()
    page.get_by_role("searchbox", name="find nodes").first.fill("exp")


def _near_miss(page: Page) -> None:
    """Show the pattern that nearly matched."""
    _move(page, "height of the panes", 40)
    page.get_by_text("patterns that came close").evaluate("title => title.scrollIntoView()")


def _instructions(page: Page) -> None:
    """Show the kernel beside its instructions."""
    _move(page, "border of Python source and forward code", -330)
    _move(page, "height of the panes", 180)
    page.locator(":is(.code-kernels, .code-tab)[data-item]").first.click()
    page.get_by_role("button", name="SASS", exact=True).click()
    _rest(page)
    for x, down in ((500, 150), (1000, 900)):
        page.mouse.move(x, 650)
        page.mouse.wheel(0, down)
    page.evaluate("getSelection().removeAllRanges()")
    page.mouse.move(0, 0)


def _in_a_cell(page: Page) -> None:
    page.add_style_tag(content=".Toastify { display: none }")  # JupyterLab asks for permission to fetch news
    page.keyboard.press("Control+b")  # the list of files
    page.wait_for_timeout(500)
    page.get_by_role("button", name="call cos:").click()
    page.mouse.move(0, 0)


def _move(page: Page, border: str, by: int) -> None:
    """Drag a border by pixels: to the right, or down."""
    separator = page.get_by_role("separator", name=border, exact=True)
    box = separator.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    down = separator.get_attribute("aria-orientation") == "horizontal"
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + (0 if down else by), y + (by if down else 0))
    page.mouse.up()
    separator.blur()


def _fit(page: Page) -> None:
    for button in page.get_by_role("button", name="fit the whole drawing (0)").all():
        button.click()
        button.blur()


def _kernel(page: Page, down: int) -> None:
    """Show the first kernel of the code, scrolled down by pixels."""
    page.locator(":is(.code-kernels, .code-tab)[data-item]").first.click()
    page.locator(".code-pane .listing-body").first.hover()
    page.mouse.wheel(0, down)
    page.mouse.move(0, 0)


NOTEBOOK = "notebook"
SCREENS = (
    Screen("viewer.png", "demo", 1280, 720, 720),
    Screen(
        "viewer-dark.png",
        "demo",
        1240,
        798,
        700,
        "open=0:forward,0:backward,0:backward.code&pin=;0:dynamo:=sin&pin=;0:dynamo:=cos",
        dark=True,
        act=_two_phases,
    ),
    Screen(
        "viewer-fusion.png",
        "layer_norm",
        1240,
        822,
        700,
        "open=0:forward.groups:fusion,0:forward.code&pin=;python:source:0&pin=;python:source:1",
        act=_one_group,
    ),
    Screen(
        "viewer-modules.png",
        "transformer",
        1240,
        814,
        700,
        "open=python:source,0:forward&pin=;python:source:=transformer.py%3A20",
        act=_modules,
    ),
    Screen(
        "viewer-why.png",
        "attention",
        1240,
        750,
        700,
        "open=0:inference.groups,why:fusion,why:rewrites",
        act=_near_miss,
    ),
    Screen(
        "viewer-sass.png",
        "sass",
        1240,
        850,
        700,
        "open=python:source,0:forward.code&pin=;python:source:0",
        needs="triton",
        act=_instructions,
    ),
    Screen("viewer-notebook.png", NOTEBOOK, 1240, 980, 980, act=_in_a_cell),
)


def missing() -> str:
    """Return why no picture can be taken here, ``""`` if they can."""
    for module in ("playwright", "jupyterlab", "ipykernel", "nbclient", "nbformat", "pytest"):
        if importlib.util.find_spec(module) is None:
            return f"{module} is not installed: pip install '.[dev]'"
    return "" if Path(chromium()).is_file() else "no Chromium is on PATH, nor named in COMPILE_LENS_CHROMIUM"


def chromium() -> str:
    """Return the Chromium that the tests would use; ``""`` if there is none."""
    from browser.conftest import NAMES

    return os.environ.get("COMPILE_LENS_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), "")


def independent(text: str, folder: Path) -> Capture:
    """Return the capture of a record without machine-specific data: folder of the program, times, date."""
    for place in {str(folder), str(folder.resolve())}:
        text = text.replace(json.dumps(f"{place}{os.sep}")[1:-1], "")
    return dataclasses.replace(Capture.from_json(text), timings=(), created="")


def captured(program: str) -> Capture:
    """Return the capture of a program of ``pictured/``."""
    names = runpy.run_path(str(PROGRAMS / f"{program}.py"))
    capture = compile_lens.capture(names["f"], *names["INPUTS"], **names.get("OPTIONS", {}))
    return independent(capture.to_json(), PROGRAMS)


def taken(
    demo: Capture, folder: Path, wanted: tuple[Screen, ...] = SCREENS
) -> Iterator[tuple[Screen, bytes]]:
    """Yield each picture, reduced. ``demo`` is the capture of the demo; ``folder`` may be filled."""
    from browser.conftest import FLAGS
    from playwright.sync_api import sync_playwright

    pages: dict[str, Path] = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=[*FLAGS, "--disable-lcd-text"])
        for screen in wanted:
            if screen.needs and importlib.util.find_spec(screen.needs) is None:
                print(f"kept assets/{screen.file}: {screen.needs} is not installed")
                continue
            name = screen.capture
            if name == NOTEBOOK:
                with _notebook(folder / "server") as opened:
                    picture = _picture(browser, screen, opened)
            else:
                if name not in pages:
                    capture = demo if name == "demo" else captured(name)
                    pages[name] = capture.save(folder / f"{name}.html")
                picture = _picture(browser, screen, _goes_to(f"{pages[name].as_uri()}#{screen.state}"))
            yield screen, png.reduced(picture)
        browser.close()


def _goes_to(address: str) -> Callable[[Page], Any]:
    return lambda page: page.goto(address)


def _picture(browser: Browser, screen: Screen, opened: Callable[[Page], Any]) -> bytes:
    from browser.pages import alive
    from browser.watch import Watch

    context = browser.new_context(
        color_scheme="dark" if screen.dark else "light",
        viewport={"width": screen.width, "height": screen.window},
        device_scale_factor=1,
        reduced_motion="reduce",
        locale="en-US",
    )
    page = context.new_page()
    watch = Watch()
    watch.follow(page)
    opened(page)
    alive(page)
    _rest(page)
    screen.act(page)
    _rest(page)
    clip = {"x": 0, "y": 0, "width": screen.width, "height": screen.height}
    picture: bytes = page.screenshot(clip=clip, full_page=True, animations="disabled", caret="hide")  # type: ignore[arg-type]
    context.close()
    if problems := watch.problems():
        raise SystemExit(f"{screen.file}: something went wrong on the page: {problems}")
    return picture


def _rest(page: Page) -> None:
    """Wait until no pane is loading and the updates after a change are done."""
    page.wait_for_function("() => !document.querySelector('.cl-app').shadowRoot.querySelector('.frame-wait')")
    page.wait_for_timeout(700)


@contextlib.contextmanager
def _notebook(top: Path) -> Iterator[Callable[[Page], Any]]:
    """Return a function that opens, in its own JupyterLab, a notebook whose only cell was run."""
    import nbformat
    from browser.notebooks import Lab, executed, placed
    from browser.servers import homes, started
    from browser.watch import Watch

    place = homes(top)
    record = place.top / "record.json"
    # A second cell saves the first one's output, so that it can be drawn without the kernel's folder.
    book = executed([CELL, f"_.save({str(record)!r})"], place)
    text = record.read_text(encoding="utf-8")
    (file,) = {source["file"] for source in json.loads(text)["sources"]}
    shown = independent(text, Path(file).parent)
    run = nbformat.read(book, as_version=4)
    del run.cells[1:]
    (output,) = run.cells[0].outputs
    output.data.update(shown._repr_mimebundle_())
    nbformat.write(run, book)
    with started("jupyterlab", place) as server:
        yield lambda page: Lab(page, Watch(), server, placed(book, place, "sin2cos2", trusted=True))
