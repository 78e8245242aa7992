"""Pages of the captures of a program's graphs, beside the program's own page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import UsageError
from .capture import CaptureError

if TYPE_CHECKING:
    from .program import Program


def save_captures(program: Program, beside: Path) -> tuple[dict[str, str], list[str]]:
    """Capture each graph and write its page: ``report-graph0.html`` beside ``report.html``. Return the names of the
    files by compile id, and a note for each graph without one.

    Raises:
        UsageError: no graph was kept, or a place cannot be written.
    """
    pages: dict[str, str] = {}
    notes = []
    for graph in program.graphs:
        target = beside.with_name(f"{beside.stem}-graph{graph.number}.html")
        try:
            capture = program.capture(graph)
        except (CaptureError, UsageError) as error:
            reason = str(error).partition("\n")[0]
            notes.append(f"graph {graph.number} ({graph.id}) has no page of its capture: {reason}")
            continue
        capture.save(target)
        pages.setdefault(graph.id, target.name)
    if not pages:
        raise UsageError(notes[0] if notes else "the program has no graph, so that there is none to capture")
    return pages, notes
