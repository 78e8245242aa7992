"""The Summary of the programs of several ranks: their differences and figures."""

from __future__ import annotations

from compile_lens.measures.program import compile_seconds, counts
from compile_lens.record.ranks import COLLECTIVES, RankDifference, RanksRecord

from ..document import cut
from ..subjects import ranks as document
from ..words.quantities import duration, plural
from .summary import Part, Row, Summary, notes, sentence

DIFFERENCES = 4
COLUMNS = 8
"""Maximum ranks in a table of figures; with more ranks it has only those that differ."""


def summary(record: RanksRecord) -> Summary:
    """Return the Summary of several ranks."""
    page = document.document(record)
    return Summary(
        page.heading,
        page.facts,
        (sentence(document.verdict(record)),),
        tuple(
            part
            for part in (_differences(record), notes(record.notes, "ranks.notes"), _figures(record))
            if part is not None
        ),
        (
            ("Everything", 'print(ranks.text("full"))'),
            ("One rank", f"ranks[{record.ranks[0]}]"),
            ("Page", 'ranks.save("ranks.html")'),
        ),
        ("That ranks which compile the same compute the same: values were not compared.",),
    )


def _differences(record: RanksRecord) -> Part | None:
    if not record.differences:
        return None
    # Differences that make ranks hang precede those that slow them down.
    ordered = sorted(record.differences, key=lambda one: one.level != COLLECTIVES)
    rows = cut([*map(_difference, ordered)], DIFFERENCES)
    return Part("Differences", plural(len(ordered), "difference"), *rows, "ranks.differences")


def _difference(one: RankDifference) -> Row:
    lines = tuple(("", f"rank {document.ranks(of)}: {' '.join(value.split())}") for value, of in one.values)
    return Row(f"{one.level}:", document.location(one), lines=lines)


def _figures(record: RanksRecord) -> Part:
    own = [counts(program) for program in record.programs]
    figures = {
        "graphs": [f"{one.graphs:,}" for one in own],
        "graph breaks": [f"{one.breaks:,}" for one in own],
        "recompiles": [f"{one.recompiles:,}" for one in own],
        "compile time": [duration(compile_seconds(program)) for program in record.programs],
        "collectives": ["" if p.issued is None else f"{len(p.issued):,}" for p in record.programs],
    }
    shown = [*range(len(record.ranks))][:COLUMNS]
    if len(record.ranks) > COLUMNS:
        others = [
            n
            for n in shown
            if any(cells[n] != cells[0] for name, cells in figures.items() if name != "compile time")
        ]
        shown = [0, *others][:COLUMNS]
    head = ("", *(f"rank {record.ranks[n]}" for n in shown))
    rows = tuple((name, *(cells[n] for n in shown)) for name, cells in figures.items() if any(cells))
    return Part("Ranks", left=len(record.ranks) - len(shown), where="ranks.programs", table=(head, *rows))
