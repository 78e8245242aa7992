"""Text copied from a chain."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from compile_lens import Capture

from . import captures
from .viewer import Viewer, python_line, through

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

pytestmark = [pytest.mark.browser, pytest.mark.torch]

Open = Callable[[Capture], Viewer]


def test_a_copied_chain_has_the_code_of_the_backward_too(context: BrowserContext, viewer: Open) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    capture = captures.sin_cos()
    page = viewer(capture)
    line = python_line(capture, "torch.sin")
    page.pin(line)
    page.unfold()
    page.find(".chain-copy").click()
    page.find(".chain-copy:text-is('Copied')").wait_for()
    text = page.page.evaluate("() => navigator.clipboard.readText()")
    linked = through(capture, [line])
    for phase in ("forward", "backward"):
        (kernel,) = capture.compilations[0].code[phase].kernels
        lines = kernel.source.split("\n")
        names = {name for _, key, name in linked if key == f"{phase}.code"}
        own = [lines[mark.line - 1].strip() for mark in kernel.lines if f"{kernel.name}:{mark.line}" in names]
        assert own, phase
        assert any(line in text for line in own), (phase, own, text)
