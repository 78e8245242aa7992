"""Figures in the header of a page cover one set of graphs, use one unit per quantity and name what they count."""

from __future__ import annotations

import dataclasses
import re

import pytest
import samples
import samples_findings

from compile_lens.measures.compare.table import across
from compile_lens.measures.ledger import Ledger, Row
from compile_lens.record.comparison import Column
from compile_lens.record.difference import CHANGED, Change
from compile_lens.record.figures import MODELLED, AtLeast, Count, Figure
from compile_lens.results.comparison import Comparison
from compile_lens.views.findings.memory import memory
from compile_lens.views.render.html import tables
from compile_lens.views.render.html.markup import PHASE_COLOURS
from compile_lens.views.subjects import compare as targets
from compile_lens.views.subjects.diff import figure
from compile_lens.views.words.ledger import basis_note
from compile_lens.views.words.outcome import saved, saving


def graph(eager: int | None, before: int | None, after: int) -> Ledger:
    """Return the ledger of one graph with one launch."""
    row = Row(
        "inference",
        None if eager is None else Figure(eager),
        launches=Figure(1),
        bytes_before=None if before is None else Figure(before, MODELLED),
        bytes_after=Figure(after, MODELLED),
    )
    return _ledger(row)


def _ledger(row: Row, *graphs: tuple[str, Ledger]) -> Ledger:
    none = Row("", exists=False)
    return Ledger(none, none, row, row, graphs)


def heads(*parts: Ledger) -> list[str]:
    some = [(f"0/{n}", part) for n, part in enumerate(parts)]
    return [saved(one) for one in saving(_ledger(Row("total"), *some))]


def test_work_and_bytes_are_of_the_same_graphs() -> None:
    """Eager operators are known for one of four graphs, so the bytes of the others are not shown beside them."""
    four = graph(2, 128, 64), graph(None, 144, 72), graph(None, 80, 40), graph(None, 136, 72)
    assert heads(*four) == [
        "work, 1 of 4 graphs: 2 eager ops → 1 launch",
        "memory traffic, 1 of 4 graphs, ATen operators before: ~128 B → ~64 B",
    ]
    assert heads(graph(2, None, 64), graph(None, 144, 72)) == [
        "work, 1 of 2 graphs: 2 eager ops → 1 launch",
        "memory traffic, 1 of 2 graphs, ATen operators before: ~144 B → ~72 B",
    ], "where no graph has both, each says of how many it is"


@pytest.mark.parametrize(
    ("eager", "launches", "said"),
    [
        (9, 12, "work, none saved: 9 eager ops → 12 launches"),
        (2, 2, "work, none saved: 2 eager ops → 2 launches"),
        (3, 2, "work: 3 eager ops → 2 launches"),
    ],
)
def test_launches_that_are_not_fewer_are_no_saving(eager: int, launches: int, said: str) -> None:
    one = dataclasses.replace(graph(eager, 128, 64).total, launches=Figure(launches))
    (work, _) = (saved(each) for each in saving(_ledger(one)))
    assert work == said
    page = tables.savings(saving(_ledger(one)))
    (big,) = re.findall(rf'style="([^"]*)">{launches} launches', page)
    assert (PHASE_COLOURS["inference"] in big) == (launches < eager)
    assert ("none saved" in page.partition("launches")[2][:400]) == (launches >= eager)


@pytest.mark.parametrize(
    ("eager", "launches", "before", "after", "large"),
    [(10, 8, 100, 80, True), (10, 9, 100, 81, False), (9, 12, 422, 416, False), (5, 1, 100, 10, True)],
)
def test_only_a_fifth_or_more_has_the_colour_of_a_saving(
    eager: int, launches: int, before: int, after: int, large: bool
) -> None:
    one = dataclasses.replace(graph(eager, before, after).total, launches=Figure(launches))
    one = dataclasses.replace(one, eager_bytes=one.bytes_before)
    parts = saving(_ledger(one))
    assert [part.large for part in parts] == [large, large]
    assert tables.savings(parts).count(PHASE_COLOURS["inference"]) == 2 * large


def test_bytes_before_say_whose_they_are_also_where_they_became_more() -> None:
    """By hand: eager PyTorch moves 40, its ATen operators 75, and compiled code 60."""
    row = dataclasses.replace(graph(2, 75, 60).total, eager_bytes=Figure(40, MODELLED), launches=Figure(2))
    _, moved = (saved(each) for each in saving(_ledger(row)))
    assert moved == "memory traffic, eager operators before, none saved by fusion: ~40 B → ~60 B"
    assert row.moved_before == 40 and "ATen" not in basis_note([row])
    unknown = dataclasses.replace(row, eager_bytes=None)
    assert unknown.moved_before == 75
    assert basis_note([unknown]).endswith("bytes before: each ATen operator by itself")


def test_none_saved_is_said_only_where_eager_pytorch_moves_and_launches_no_more() -> None:
    """By hand: eager PyTorch moves 100 in 3 operators; 40 of it are copies that Inductor's graph does not have."""
    row = dataclasses.replace(graph(3, 80, 60).total, eager_bytes=Figure(100, MODELLED), copied_bytes=40)

    def line(**changes: object) -> str:
        return saved(saving(_ledger(dataclasses.replace(row, **changes)))[1])

    eager = "memory traffic, eager operators before"
    assert line() == f"{eager}, all saved by writes in place: ~100 B → ~60 B"
    assert line(copied_bytes=10) == f"{eager}, ~10 B saved by writes in place: ~100 B → ~60 B"
    assert line(copied_bytes=0, launches=Figure(3)) == f"{eager}: ~100 B → ~60 B"
    assert line(bytes_after=Figure(100, MODELLED)) == f"{eager}: ~100 B → ~100 B", "it launches more"
    same = {"bytes_after": Figure(100, MODELLED), "launches": Figure(3)}
    assert line(**same) == "memory traffic, none saved by fusion: ~100 B"
    unknown = line(eager_bytes=None, bytes_after=Figure(90, MODELLED), launches=Figure(3))
    assert unknown == "memory traffic, ATen operators before: ~80 B → ~90 B"
    part = AtLeast(Count(100), MODELLED, known=0)
    assert line(eager_bytes=part, bytes_after=part) == f"{eager}: ≥ ~100 B → ≥ ~100 B"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("peak", "peak 11.7 KiB → 23.4 KiB (+11.7 KiB, modelled)"),
        ("bytes", "bytes 12 kB → 24 kB (+12 kB, modelled)"),
    ],
)
def test_a_difference_has_the_units_of_a_capture(name: str, said: str) -> None:
    assert figure(Change("figures", CHANGED, "", (), (), name, 12_000, 24_000, MODELLED)) == said


def test_the_peak_says_of_which_compilation_it_is() -> None:
    capture = samples_findings.told()
    (one,) = capture.compilations
    lines = memory(capture)
    assert lines is not None and lines.badge == "~11.7 KiB"
    small = tuple(dataclasses.replace(held, peak=72) for held in one.memory)
    two = dataclasses.replace(one, id="1/0", memory=small)
    lines = memory(dataclasses.replace(capture, compilations=(two, one)))
    assert lines is not None
    assert lines.badge == f"~11.7 KiB in {one.id}"
    assert lines.fact == f"peak ~11.7 KiB in {one.id} forward"


def test_a_comparison_says_the_bytes_once_where_they_are_the_same() -> None:
    capture = samples.sample()
    both = [Column(name, capture) for name in ("cpu", "h100")]
    text = "17 eager ops → 2 launches · ~160 kB → ~20 kB modelled"
    assert targets.headline(across("f", both, Comparison)) == text
    (one,) = capture.compilations
    other = dataclasses.replace(capture, compilations=(dataclasses.replace(one, stages=one.stages[:-1]),))
    apart = targets.headline(across("f", [both[0], Column("mps", other)], Comparison))
    assert "cpu: ~160 kB → ~20 kB; mps: ~" in apart
    failed = [both[0], Column("mps", None, "it raised")]
    assert targets.headline(across("f", failed, Comparison)) == text
