"""Figures and places are marked as modelled at each width, distinguished from each other, and explained."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from full_text import full

from compile_lens import Capture, capture
from compile_lens.views.render.markdown import page as markdown
from compile_lens.views.subjects.capture import document

from . import captures
from .viewer import Viewer, box

pytestmark = [pytest.mark.browser, pytest.mark.torch]

Open = Callable[[Capture], Viewer]

BROKEN = """
import torch

def f(x):
    y = x.sin(); a = x.sum().item() + x.mean().item()
    return y * a
"""


@pytest.mark.parametrize("viewport", [(1280, 720), (820, 600), (390, 844)])
def test_modelled_bytes_are_marked_and_within_reach_at_each_width(viewer: Open) -> None:
    page = viewer(captures.layer())
    launched = page.find(".code-tab .launch-bytes").all_inner_texts()
    assert launched and all(one.startswith("~") for one in launched if one), launched
    seen = page.find(".top-savings .saving:visible").all_inner_texts()
    assert all("~" in one for one in seen if "B" in one)
    page.find(".top-about").click()
    texts = [one.inner_text() for one in page.find(".about p:visible").all()]
    (moved,) = (one for one in texts if one.startswith("memory traffic"))
    total = captures.layer().ledger.total
    assert moved.endswith(", modelled: " + moved.rpartition(": ")[2]) and moved.count("~") == 2
    assert "eager operators before" in moved or "ATen operators before" in moved
    assert f"work: {total.eager_ops} eager ops → {total.launches} launches" in texts


@pytest.fixture(scope="module")
def broken() -> Capture:
    return captures.written(BROKEN, "broken")


@pytest.mark.parametrize("viewport", [(1280, 720)])
def test_two_breaks_in_a_line_are_told_apart_by_their_calls(viewer: Open, broken: Capture) -> None:
    """The expected columns come from searching the text for the calls; the second call is the rest of the first sum."""
    line = BROKEN.splitlines()[4]
    spans = [
        (line.index(call), line.index(call) + len(call)) for call in ("x.sum().item()", "x.mean().item()")
    ]
    number = next(c.line for c in broken.compilations) + 1
    page = viewer(broken)
    note = page.find(".listing-note").first.inner_text() if page.find(".listing-note").count() else ""
    source = note or page.pane("python").inner_text()
    rows = [" ".join(row.split()) for row in page.find(".compilation").all_inner_texts()]
    assert len(rows) == 3 and len({row.partition(" ")[2] for row in rows}) == 3
    for (start, end), row in zip(spans, rows[1:], strict=True):
        place = f"{number}:{start}-{end}"
        assert f"graph break at {place}: " in source.replace("\n", " "), (place, source)
        assert row.endswith(f"continues after the break at {place}")
        assert place in full(broken)


@pytest.mark.parametrize("viewport", [(1280, 720), (820, 600)])
def test_a_page_without_source_says_why_in_view(viewer: Open, viewport: tuple[int, int]) -> None:
    scope: dict[str, Any] = {"torch": torch}
    exec("def made(x):\n    return torch.sin(x) * 2 + torch.cos(x)", scope)
    shown = capture(scope["made"], torch.rand(64))
    said = "No Python source: the code is from <string>, which is not a file; no line gives a colour."
    page = viewer(shown)
    note = page.pane("inference").locator(".graph-note")
    assert note.inner_text().startswith(said)
    place = box(note)
    assert place["y"] + place["height"] <= viewport[1]
    assert " ".join(page.find(".flow-python").inner_text().split()) == "none Python"
    assert said in " ".join(full(shown).split())
    assert "No Python source" in markdown(document(shown))
    assert "No Python source" not in full(captures.sin_cos())


@pytest.mark.parametrize("viewport", [(1280, 720), (820, 600)])
def test_the_ground_of_a_row_has_all_its_units_in_view(viewer: Open) -> None:
    page = viewer(captures.sin_cos())
    lines = page.pane("forward.code").locator(".listing-line:has(.tag + .tag)")
    lines.first.wait_for()
    wide = box(page.pane("forward.code"))["width"]
    rows = lines.evaluate_all(
        "all => all.map(e => [getComputedStyle(e).backgroundImage, e.querySelectorAll('.tag').length])"
    )
    for ground, tags in rows:
        stops = [float(stop) for stop in re.findall(r"([\d.]+)px", ground)]
        assert len(stops) >= tags and max(stops) < wide - 60, ground


def test_what_opens_says_why_it_and_not_another(viewer: Open) -> None:
    """Measured from the bars of the top rows; a library call has no text."""
    shown = captures.layer()
    page = viewer(shown)
    note = page.pane("forward").locator(".graph-note")
    note.wait_for()
    rows = sorted(page.find(".code-tab:visible").all(), key=lambda row: box(row)["y"])
    assert len(rows) > 7
    why = "none of the 7 that cost most joins more lines"
    assert f"what the open kernel computes; {why}." in note.inner_text()
    written = [
        row.locator(".part:not(.part-more)").count()
        for row in rows[:7]
        if not (row.get_attribute("title") or "").startswith(("extern_kernels.", "torch.ops."))
    ]
    (opened,) = page.find(".code-tab[aria-selected=true]").all()
    assert opened.locator(".part:not(.part-more)").count() == max(written)


def test_in_between_is_of_the_whole_phase(viewer: Open) -> None:
    foot = viewer(captures.sin_cos()).pane("forward.code").locator(".between b")
    foot.wait_for()
    assert foot.inner_text() == "In between, all of forward"
