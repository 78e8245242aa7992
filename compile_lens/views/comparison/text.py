"""A comparison on a terminal: figures side by side, why they differ, and each line's kernels."""

from __future__ import annotations

from compile_lens.record.comparison import KINDS, ComparisonRecord, Difference, Row
from compile_lens.record.compilation import PHASES
from compile_lens.views.render.text import Paper, paper_of
from compile_lens.views.words.characters import cells
from compile_lens.views.words.stamp import MAY_DIFFER

from . import outline

MANY = 24
"""Differences and lines told one by one before the rest is only counted."""

FACTS = 8


def page(comparison: ComparisonRecord, width: int | None = None, ascii: bool | None = None) -> str:
    """The comparison as text, ending in a newline. ``width`` and ``ascii`` as for a capture's page."""
    paper = paper_of(width, ascii)
    paper.section(f"compile_lens: {outline.heading(comparison)}")
    paper.text_block(" · ".join(outline.made_with(comparison)), "  ", limit=3)
    for column in comparison.columns:
        paper.text_block("; ".join(outline.column(column)), f"  {column.target}: ", "    ", limit=6)
    _figures(paper, comparison)
    paper.section("why they differ")
    paper.text_block(outline.agreement(comparison), "  ", limit=3)
    for difference in comparison.differences[:MANY]:
        _difference(paper, difference)
    paper.more(len(comparison.differences) - MANY, "difference", "comparison.differences")
    _rows(paper, comparison)
    differences = outline.may_differ(comparison)
    if differences:
        paper.section(MAY_DIFFER)
    for words in differences[:MANY]:
        paper.text_block(words, "  · ", "    ", limit=4)
    paper.more(len(differences) - MANY, "thing", "capture.target.may_differ and .queries")
    return paper.text()


def _figures(paper: Paper, comparison: ComparisonRecord) -> None:
    targets = [column.target for column in comparison.columns]
    for table in outline.tables(comparison):
        paper.section(table.phase)
        rows = [("", *targets), *((title, *values) for title, values in table.rows)]
        right = [False] + [True] * len(targets)
        if not paper.table([r for r in rows if r[0] != "kernel kinds"], right):
            for title, values in table.rows:
                said = ", ".join(f"{t} {v}" for t, v in zip(targets, values, strict=True))
                paper.text_block(f"{title}: {said}", "  ", "    ")
        for title, values in table.rows:
            if title == "kernel kinds":
                for target, value in zip(targets, values, strict=True):
                    paper.text_block(f"{target}: {value}", "  ", "    ", limit=3)


def _difference(paper: Paper, one: Difference) -> None:
    where = outline.where(one)
    paper.line()
    paper.text_block(f"{KINDS.get(one.kind, one.kind)}{': ' if where else ''}{where}", "  ", "    ", limit=3)
    paper.text_block(one.sentence, "    ", limit=4)
    for fact in one.facts[:FACTS]:
        paper.text_block(str(fact), "    · ", "      ", limit=5)
    paper.more(len(one.facts) - FACTS, "fact", "Difference.facts", "    ")


def _rows(paper: Paper, comparison: ComparisonRecord) -> None:
    if not comparison.rows:
        return
    paper.section("kernels by line")
    # Lines that differ come first where there are too many to tell them all.
    rows = (
        comparison.rows
        if len(comparison.rows) <= MANY
        else sorted(comparison.rows, key=lambda row: row.alike)
    )
    shown = sorted(rows[:MANY], key=comparison.rows.index)
    for phase in PHASES:
        for row in shown:
            if row.phase == phase:
                _row(paper, row)
    paper.more(len(comparison.rows) - MANY, "line", "comparison.rows")


def _row(paper: Paper, row: Row) -> None:
    paper.line(f"  {row.phase} {row.place}  {row.text}{'' if row.alike else '   (differs)'}")
    room = max((cells(cell.target) for cell in row.cells), default=0)
    for cell in row.cells:
        said = "; ".join(outline.use(use) for use in cell.kernels) or cell.note or "no kernel"
        paper.text_block(said, f"    {cell.target.ljust(room)}  ", " " * (6 + room), limit=6)
