"""Where a guard that failed was made: by a line of the program, or with a tensor at its first use."""

from __future__ import annotations

import os

from compile_lens.record.graph import Frame
from compile_lens.record.messages import plain_source
from compile_lens.record.nearness import abouts
from compile_lens.record.program import FailedGuard, FrameEvaluation, ProgramFrame

from .outline import UNSAID

FIRST_USED = "none; first used at"
NOTE = " No line asks for what torch checks of each tensor: it does so from the line on where the tensor is first used."


def place(frame: Frame | None) -> str:
    """A line as ``train.py:31``."""
    return f"{os.path.basename(frame.file)}:{frame.line}" if frame is not None and frame.file else UNSAID


class MadeAt:
    """Says it of the failed guards of one function."""

    def __init__(self, frame: ProgramFrame) -> None:
        self._forms: dict[str, list[FrameEvaluation]] = {}
        for visit in frame.evaluations:
            if visit.guards:
                self._forms.setdefault(visit.id, []).append(visit)

    def of(self, failed: FailedGuard, visit: FrameEvaluation) -> str:
        """``t.py:3``, or that no line did and where the tensor is first used; ``""`` where neither is known."""
        if failed.line is not None:
            return place(failed.line)
        if not failed.text.startswith("tensor '"):
            return ""
        older = [form for form in self._forms.get(failed.id, ()) if form.number < visit.number]
        names = set(abouts(failed.source))
        guards = older[-1].guards if older else ()
        lines = {
            place(guard.line)
            for guard in guards
            if guard.kind == "TENSOR_MATCH" and guard.line is not None and plain_source(guard.source) in names
        }
        return f"{FIRST_USED} {lines.pop()}" if len(lines) == 1 else ""
