"""The Summary of a difference between two captures: its largest consequence, its causes and its figures."""

from __future__ import annotations

from compile_lens.record.difference import Change, DifferenceRecord
from compile_lens.record.figures import MODELLED

from ..document import cut
from ..subjects import diff as document
from ..words.quantities import plural
from .summary import Part, Row, Summary, sentence, sentences

CAUSES, UNKNOWN = 4, 3
HEADLINE = ("launches", "bytes", "graph_breaks", "recompiles", "graphs", "peak")
"""Figures of a headline, the most important first."""

NOT_COMPARED = "That the results are the same: values were not compared."
NOT_TIMED = "That one is faster: no time was measured."


def summary(diff: DifferenceRecord) -> Summary:
    """Return the Summary of a difference."""
    figures = diff.at("figures")
    headline = consequences(diff)
    verdict = [document.amount(diff), *([headline] if headline else [])]
    if diff and not figures:
        verdict.append(document.NO_FIGURE)
    unknown = sentences(
        "Not compared", plural(len(diff.unknown), "thing"), diff.unknown, UNKNOWN, "difference.unknown"
    )
    parts = (_causes(diff), _figures(figures), _levels(diff), unknown)
    return Summary(
        document.heading(diff),
        (),
        tuple(map(sentence, reversed(verdict) if headline else verdict)),
        tuple(part for part in parts if part is not None),
        (("Everything", 'print(difference.text("full"))'), ("Page", 'difference.save("difference.html")')),
        (NOT_COMPARED, NOT_TIMED),
    )


def consequences(diff: DifferenceRecord, most: int = 3) -> str:
    """Return the changed figures, the most important first; ``""`` if none changed."""
    figures = {change.name: change for change in diff.at("figures")}
    return "; ".join([document.figure(figures[name]) for name in HEADLINE if name in figures][:most])


def _causes(diff: DifferenceRecord) -> Part | None:
    if not diff.causes:
        return None
    title, fact = ("Differs first", document.UNEXPLAINED.rstrip(".")) if diff.unexplained else ("Cause", "")
    return Part(title, fact, *cut([*map(_row, diff.causes)], CAUSES), "difference.causes")


def _row(change: Change) -> Row:
    words = document.figure(change)
    facts = () if change.level in ("code", "guards") else change.facts[:2]
    place = " | ".join(change.lines[:2])
    head = f"{document.mark(change)} {change.level}"
    lines = (("", words), *((("code", place),) if place else ()), *(("", fact) for fact in facts))
    return Row(head, lines=tuple((label, " ".join(text.split())) for label, text in lines))


def _figures(changes: tuple[Change, ...]) -> Part | None:
    rows = [("", "before", "after", "")]
    for change in changes:
        if (known := document.numbers(change)) is not None:
            name, before, after, more = known
            mark = "~" if change.basis == MODELLED else ""
            rows.append((name, mark + before, mark + after, more))
    unknown = tuple(Row("", lines=(("", c.text),)) for c in changes if c.before is None or c.after is None)
    return Part("Figures", rows=unknown, table=tuple(rows) if len(rows) > 1 else ()) if changes else None


def _levels(diff: DifferenceRecord) -> Part | None:
    counts = [f"{level} {len(changes)}" for level, changes in document.levels(diff)]
    return Part("Changes by level", ", ".join(counts)) if counts else None
