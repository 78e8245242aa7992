"""Lines that Python itself runs, observed with its own trace function."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any


def lines_run(call: Callable[..., Any], x: Any, of: Callable[[types.CodeType], bool]) -> set[int]:
    """Return the lines that Python runs in ``call(x)``, of the code objects that ``of`` selects."""
    lines: set[int] = set()

    def trace(frame: types.FrameType, event: str, arg: Any) -> Any:
        if event == "line" and of(frame.f_code):
            lines.add(frame.f_lineno)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call(x)
    finally:
        sys.settrace(before)
    return lines
