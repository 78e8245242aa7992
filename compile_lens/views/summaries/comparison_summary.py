"""The Summary of a comparison of targets: their savings and the reasons for their differences."""

from __future__ import annotations

from compile_lens.record.comparison import KINDS, ComparisonRecord, TargetDifference

from ..document import cut
from ..subjects import compare as document
from ..words.quantities import printed
from .capture_summary import NOT_TIMED
from .summary import Part, Row, Summary, sentence

DIFFERENCES = 4
FIGURES = ("launches", "groups", "bytes, modelled")
"""Figures of each phase in a table, by their titles in the ledger."""


def summary(comparison: ComparisonRecord) -> Summary:
    """Return the Summary of a comparison."""
    failures = tuple(
        Row("", target, lines=(("torch says", reason),)) for target, reason in comparison.failures.items()
    )
    parts = [Part("Failed", rows=failures)] if failures else []
    parts += [part for part in (_differences(comparison), _figures(comparison)) if part is not None]
    verdict = filter(None, (document.headline(comparison), document.agreement(comparison)))
    return Summary(
        document.heading(comparison),
        document.made_with(comparison)[:1],
        tuple(map(sentence, verdict)),
        tuple(parts),
        (("Everything", 'print(comparison.text("full"))'), ("Page", 'comparison.save("comparison.html")')),
        (NOT_TIMED, "That the real device gives the same code: the code was generated for its model."),
    )


def _differences(comparison: ComparisonRecord) -> Part | None:
    if not comparison.differences:
        return None
    rows = cut([*map(_difference, comparison.differences)], DIFFERENCES)
    return Part("Why they differ", "", *rows, "comparison.differences")


def _difference(one: TargetDifference) -> Row:
    lines = (("", one.sentence), *(("", f"{fact.target}: {fact.text}") for fact in one.facts))
    return Row(f"{KINDS.get(one.kind, one.kind)}:", document.places(one), lines=lines)


def _figures(comparison: ComparisonRecord) -> Part | None:
    rows = [
        (f"{phase} {title}", *(cell if isinstance(cell, str) else printed(cell) for cell in cells))
        for phase, figures in document.tables(comparison).items()
        for title, cells in figures.items()
        if title in FIGURES
    ]
    head = ("", *(column.target for column in comparison.columns))
    return Part("Figures", table=(head, *rows)) if rows else None
