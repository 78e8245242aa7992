"""What switches would change, as a table."""

from __future__ import annotations

from compile_lens.record.what_if import FIGURES, Trial, WhatIfRecord

from .paper import paper_of
from .words.outline import plural

MANY = 20
NOT_TIMED = (
    "Fewer launches and bytes are no proof of less time: benchmark what helps on the device. Counts are measured, "
    "bytes modelled."
)


def page(found: WhatIfRecord, width: int | None = None, ascii: bool | None = None) -> str:
    """The outcome as text, ending in a newline. ``width`` and ``ascii`` as for a capture's page."""
    paper = paper_of(width, ascii, "─→·−")
    paper.section(f"compile_lens: what would change {found.function}")
    paper.text_block(headline(found), "  ", limit=4)
    tried = [t for t in found.trials if t.matters]
    if tried:
        paper.section("switches that change something")
    helpful = found.helpful
    for trial in (*helpful, *(t for t in tried if t not in helpful))[:MANY]:
        paper.text_block(", ".join(trial.settings), "  ", "    ", limit=3)
        paper.text_block(said(trial), "    ", "      ", limit=3)
        paper.text_block(trial.meaning, "    ", "      ", limit=2)
    paper.more(len(tried) - MANY, "switch", ".trials")
    nothing = [t.name for t in found.trials if not t.matters and not t.failure]
    if nothing:
        paper.section("switches that change nothing here")
        paper.text_block(", ".join(nothing), "  ", limit=6)
    failed = [t for t in found.trials if t.failure]
    if failed or found.left_out:
        paper.section("not tried")
    for name, why in (*((t.name, t.failure) for t in failed), *found.left_out):
        paper.text_block(f"{name}: {why}", "  · ", "    ", limit=3)
    return paper.text()


def headline(found: WhatIfRecord) -> str:
    """The best that was found, or that none of them helps."""
    count = plural(len(found.trials), "trial")
    stopped = " It was interrupted before all were tried." if found.interrupted else ""
    if not found.helpful:
        return (
            f"None of them helps: {count}, and none has fewer launches, fewer bytes or a lower peak.{stopped}"
        )
    best = found.helpful[0]
    return f"{', '.join(best.settings)}: {said(best)} ({count}). {NOT_TIMED}{stopped}"


def said(trial: Trial) -> str:
    """The figures that change: ``launches 2 → 1, bytes 800 → 400``."""
    figures = dict(trial.figures)
    parts = [
        f"{name} {_number(figures[name][0])} → {_number(figures[name][1])}"
        for name in FIGURES
        if name in figures
    ]
    return ", ".join(parts) or "no figure is another"


def _number(value: int | None) -> str:
    return "not known" if value is None else f"{value:,}"
