"""A page whose script may not run, or runs only in a sandbox, can still be read completely."""

from __future__ import annotations

import html
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compile_lens import Capture

from . import captures
from .pages import APP, ROOT, contrast, images, is_dark
from .settling import settle
from .watch import Watch

if TYPE_CHECKING:
    from playwright.sync_api import Frame, Page

pytestmark = [pytest.mark.browser, pytest.mark.torch]

Report = Callable[[Capture], Path]
MADE = pytest.mark.parametrize("made", [captures.sin_cos, captures.wrong_shapes])
POLICIES = ["script-src 'none'", "default-src 'self'; style-src 'unsafe-inline'; img-src data:"]
PLACE = "http://127.0.0.1:9/page.html"


@pytest.mark.parametrize("policy", POLICIES)
def test_under_a_policy_without_inline_scripts(page: Page, watch: Watch, report: Report, policy: str) -> None:
    """The policy is that of a host that serves third-party pages."""
    text = report(captures.sin_cos()).read_text(encoding="utf-8")
    headers = {"content-security-policy": policy, "content-type": "text/html; charset=utf-8"}
    page.route(PLACE, lambda route: route.fulfill(body=text, headers=headers))
    watch.allow(PLACE)
    watch.expect("Content Security Policy")
    watch.expect("Blocked script execution")
    page.goto(PLACE)
    _whole(page.main_frame)


@pytest.mark.parametrize("colour_scheme", ["light", "dark"])
@MADE
def test_in_a_frame_without_scripts(
    page: Page,
    watch: Watch,
    report: Report,
    made: Callable[[], Capture],
    tmp_path: Path,
    colour_scheme: str,
) -> None:
    watch.expect("Blocked script execution")
    frame = _framed(page, watch, report(made()), "", tmp_path)
    _whole(frame)
    faint = frame.locator(f"{ROOT} .cl-static :is(h1, td, summary, .cl-code, .cl-listing span)")
    for shown in (frame.locator(f"{ROOT} .cl-static"), *faint.all()[::7]):
        assert is_dark(shown) == (colour_scheme == "dark") and contrast(shown) >= 4.5


@MADE
def test_in_a_frame_with_scripts_it_is_alive(
    page: Page, watch: Watch, report: Report, made: Callable[[], Capture], tmp_path: Path
) -> None:
    """A frame without its own origin has no storage and no writable history."""
    frame = _framed(page, watch, report(made()), "allow-scripts", tmp_path)
    frame.wait_for_selector(f"{ROOT}[data-alive], {ROOT} .cl-not-alive", state="attached")
    assert frame.locator(f"{ROOT} .cl-not-alive").all_inner_texts() == []
    assert frame.locator(APP).is_visible()
    unit = frame.locator(f"{APP} .listing-line").nth(1)
    unit.click(position={"x": 60, "y": 6})
    settle(page)
    assert frame.locator(APP).is_visible()


def _framed(page: Page, watch: Watch, report: Path, sandbox: str, folder: Path) -> Frame:
    text = html.escape(report.read_text(encoding="utf-8"), quote=True)
    file = folder / "frame.html"
    file.write_text(
        "<!doctype html><title>host</title><body style='margin:0'>"
        f'<iframe sandbox="{sandbox}" srcdoc="{text}" style="width:1200px;height:800px;border:0"></iframe>',
        encoding="utf-8",
    )
    watch.allow(file.as_uri())
    page.goto(file.as_uri())
    frame = page.frames[1]
    frame.wait_for_selector(ROOT, state="attached")
    return frame


def _whole(frame: Frame) -> None:
    """Assert that every part can be read: the saved figures, the stages, source, drawings and code; each fold opens."""
    assert frame.locator(f"{ROOT}[data-alive]").count() == 0
    layer = frame.locator(f"{ROOT} .cl-static").first
    assert layer.is_visible() and contrast(layer) >= 4.5
    folds = layer.locator("details:not([open])")
    if folds.count():
        folds.first.locator("> summary").click()
        folds.evaluate_all("all => all.forEach((fold) => { fold.open = true; })")
    assert layer.locator("details:not([open])").count() == 0
    assert all(images(layer))
    for part in ("pre.cl-code", ".cl-outcome"):
        assert layer.locator(part).first.is_visible(), part
    hidden = (
        "all => all.filter((e) => e.textContent.trim() && !e.checkVisibility()).map((e) => e.textContent)"
    )
    assert layer.locator("pre, td, h2").evaluate_all(hidden) == []
