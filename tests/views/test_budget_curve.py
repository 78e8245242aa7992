"""The curve of memory by budget on a capture's page: shown once requested, with each figure computed by hand."""

from __future__ import annotations

import dataclasses
import re
import xml.etree.ElementTree as ET

import pytest
import samples
import samples_findings
from samples_findings import CURVE

from compile_lens.record.memory import SavedTensor
from compile_lens.record.memory_curve import MemoryCurveRecord, MemoryPoint
from compile_lens.results.capture import Capture
from compile_lens.views.document import Finding, Picture, Prose, Table
from compile_lens.views.drawing.budget_chart import WIDTH, budget_chart
from compile_lens.views.findings import findings
from compile_lens.views.findings.budget_curve import NOT_ASKED
from compile_lens.views.live.page import fragment, parts
from compile_lens.views.render import html, markdown
from compile_lens.views.subjects.capture import document
from compile_lens.views.summaries.capture_summary import summary
from compile_lens.views.summaries.short_text import text


def saving() -> Capture:
    """Return a capture that saves a tensor of 4,000 bytes besides inputs and results."""
    sample = samples_findings.told()
    partition = sample.compilations[0].partition
    assert partition is not None
    saved = (SavedTensor("mul", 4000, ("mul",)),)
    compilation = dataclasses.replace(
        sample.compilations[0], partition=dataclasses.replace(partition, saved=saved)
    )
    return dataclasses.replace(sample, compilations=(compilation,))


def with_curve(curve: MemoryCurveRecord = CURVE) -> Capture:
    return dataclasses.replace(saving(), budget_curve=curve)


def memory(capture: Capture) -> Finding:
    return next(one for one in findings(capture) if one.key == "memory")


def test_a_capture_without_a_curve_says_how_to_get_it_where_something_is_saved() -> None:
    sections = memory(saving()).sections
    assert (NOT_ASKED,) in [s.paragraphs for s in sections if isinstance(s, Prose)]
    assert not any(isinstance(s, Picture) and s.spots for s in sections)
    for other in (with_curve(), samples_findings.told()):  # the saved value takes no memory of its own
        assert NOT_ASKED not in str(memory(other))


def test_every_view_has_the_curve_that_was_asked_for() -> None:
    """By hand: 8 MiB at the default; 4 MiB, half of it, at 0.5; 6 MiB at 0, more than at 0.5."""
    capture = with_curve()
    _, picture, table = memory(capture).sections[:3]
    assert isinstance(picture, Picture) and isinstance(table, Table) and len(table.rows) == 4
    for view in (html.static(document(capture)), markdown.page(document(capture)), text(summary(capture))):
        assert "-50 %" in view and "0.5" in view
    assert "0 has a higher peak than 0.5" in markdown.page(document(capture))
    assert "out of memory" in markdown.page(document(capture))


def test_the_parts_of_the_chart_are_one_for_each_budget_side_by_side() -> None:
    picture = memory(with_curve()).sections[1]
    assert isinstance(picture, Picture)
    assert [spot.words.split(":")[0] for spot in picture.spots] == ["0", "0.5", "0.75", "1"]
    assert all(a.end == b.start for a, b in zip(picture.spots, picture.spots[1:]))
    assert [spot.chosen for spot in picture.spots] == [False, True, False, False]
    assert "not captured: out of memory" in picture.spots[2].words
    assert "3 operators computed again: example.py:5 torch.cos(x)" in picture.spots[1].words


def test_no_line_goes_over_a_budget_that_is_not_known() -> None:
    root = ET.fromstring(budget_chart(CURVE))
    lines = [e for e in root.iter() if e.tag.endswith("polyline") and e.get("class") == "peak"]
    assert [len((line.get("points") or "").split()) for line in lines] == [1, 2]
    circles = [e for e in root.iter() if e.tag.endswith("circle")]
    assert len(circles) == 3 and [e.get("class") for e in circles].count("best") == 1
    # On a phone the picture is not scaled, so that its letters keep their size.
    assert WIDTH <= 390 - 2 * 14 and min(map(int, re.findall(r"font:(\d+)px", budget_chart(CURVE)))) >= 11
    assert budget_chart(MemoryCurveRecord("f", "", CURVE.points[:1])) == ""


@pytest.mark.parametrize("most", [3, 700, 5_000, 2**20, 40 * 2**20, 13 * 2**30])
def test_the_grid_has_few_lines_that_reach_over_the_peak(most: int) -> None:
    points = (MemoryPoint(1, 0, most, most), MemoryPoint(0, 0, most // 2, most // 2))
    root = ET.fromstring(budget_chart(MemoryCurveRecord("f", "", points)))
    grid = [e for e in root.iter() if e.get("class") == "grid"]
    tops = [float(e.get("cy") or 0) for e in root.iter() if e.tag.endswith("circle")]
    assert 3 <= len(grid) <= 6 and min(tops) >= 29


def test_only_a_page_with_a_curve_bears_what_makes_it_live() -> None:
    capture = samples.sample()
    bare, curved = fragment(capture), fragment(dataclasses.replace(capture, budget_curve=CURVE))
    assert len(curved) > len(bare) + 10_000
    picture = parts(with_curve())["why-memory"]["sections"][1]  # type: ignore[index]
    assert [spot["chosen"] for spot in picture["spots"]] == [False, True, False, False]
