"""Pages of the captures of a program's graphs, next to the program's own page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ..errors import UsageError
from ..record.program import ProgramGraph
from .capture import Capture, CaptureError


def save_captures(
    graphs: Sequence[ProgramGraph], captured: Callable[[ProgramGraph], Capture], beside: Path
) -> tuple[dict[str, str], list[str]]:
    """Capture each graph and write its page: ``report-graph0.html`` next to ``report.html``. Return the names of the
    files by compile id, and a note for each graph without one.

    Raises:
        UsageError: if no graph was retained, or a path cannot be written.
    """
    pages: dict[str, str] = {}
    notes = []
    for graph in graphs:
        target = beside.with_name(f"{beside.stem}-graph{graph.number}.html")
        try:
            capture = captured(graph)
        except (CaptureError, UsageError) as error:
            reason = str(error).partition("\n")[0]
            notes.append(f"graph {graph.number} ({graph.id}) has no page of its capture: {reason}")
            continue
        capture.save(target)
        pages.setdefault(graph.id, target.name)
    if not pages:
        raise UsageError(notes[0] if notes else "the program has no graph, so there is none to capture")
    return pages, notes
