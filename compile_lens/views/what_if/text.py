"""What switches would change, on a terminal."""

from __future__ import annotations

from compile_lens.record.what_if import WhatIfRecord
from compile_lens.views.paper import paper_of

from . import outline

MANY = 20
"""Switches told one by one."""


def page(found: WhatIfRecord, width: int | None = None, ascii: bool | None = None) -> str:
    """The outcome as text, ending in a newline. ``width`` and ``ascii`` as for a capture's page."""
    paper = paper_of(width, ascii, "─→·−")
    paper.section(f"compile_lens: {outline.heading(found)}")
    paper.text_block(outline.headline(found), "  ", limit=4)
    rows = outline.rows(found)
    if rows:
        paper.section(outline.SOMETHING)
    for trial in rows[:MANY]:
        paper.text_block(", ".join(trial.settings), "  ", "    ", limit=3)
        paper.text_block(outline.said(trial), "    ", "      ", limit=3)
        paper.text_block(trial.meaning, "    ", "      ", limit=2)
        if trial in found.helpful:
            paper.verbatim(trial.to_apply, "    ")
    paper.more(len(rows) - MANY, "switch", ".trials")
    for title, names in outline.rest(found):
        paper.section(title)
        paper.text_block(names, "  ", limit=6)
    untried = outline.not_tried(found)
    if untried:
        paper.section("not tried")
    for name, why in untried:
        paper.text_block(f"{name}: {why}", "  · ", "    ", limit=3)
    return paper.text()
