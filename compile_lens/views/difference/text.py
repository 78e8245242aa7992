"""A difference on a terminal."""

from __future__ import annotations

from compile_lens.record.difference import CHANGED, Change, DifferenceRecord
from compile_lens.views.render.text import Paper, paper_of

from . import outline

MANY = 12
"""Changes of one level told one by one before the rest is only counted."""


def page(found: DifferenceRecord, width: int | None = None, ascii: bool | None = None) -> str:
    """The difference as text, ending in a newline. ``width`` and ``ascii`` as for a capture's page."""
    paper = paper_of(width, ascii)
    paper.section(f"compile_lens: {outline.heading(found)}")
    for line in outline.summary(found):
        paper.text_block(line, "  ", "    ", limit=6)
    for part in outline.parts(found):
        paper.section(part.title)
        for change in part.changes[:MANY]:
            _change(paper, change)
        paper.more(len(part.changes) - MANY, "change", f"difference.at({part.level!r})")
    if outline.unknown(found):
        paper.section(outline.unknown(found))
    for reason in found.unknown[:MANY]:
        paper.text_block(reason, "  · ", "    ", limit=3)
    paper.more(len(found.unknown) - MANY, "stage", "difference.unknown")
    return paper.text()


def _change(paper: Paper, change: Change) -> None:
    words = outline.figure(change) if change.name else outline.told(change)
    paper.text_block(words, f"  {outline.mark(change)} ", "    ", limit=5)
    if change.level == "guards":  # torch's own texts, of several lines each
        if len(change.facts) > 1 and change.kind != CHANGED:
            paper.line("      · in torch's words: Change.facts")
        return
    for fact in change.facts[: outline.FACTS]:
        if change.level == "code":
            paper.line(f"      {fact}")
        else:
            paper.text_block(fact, "      · ", "        ", limit=4)
    paper.more(len(change.facts) - outline.FACTS, "line", "Change.facts", "      ")
