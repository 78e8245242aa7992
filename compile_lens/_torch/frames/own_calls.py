"""Calls of compile_lens in a compiled program: Dynamo breaks the graph there and does not trace them."""

from __future__ import annotations

import types
from pathlib import Path

from torch._dynamo import trace_rules

from ..ground.undo import Undo

HINT = "Call compile_lens outside of what is compiled: Dynamo does not trace it."

_PACKAGE = Path(__file__).parents[2]

_DATA = tuple(
    f"{(_PACKAGE / name).as_posix()}/"
    for name in ("devices", "layout", "measures", "record", "results", "views")
)
"""Folders whose code calls no function of the program."""

_OWN_CALLS = tuple((_PACKAGE / "api" / f"{name}.py").as_posix() for name in ("expect", "load", "support"))
"""Public functions that call the program's functions only in a capture."""

_SKIPPED = (
    *(
        path.as_posix() for path in (_PACKAGE / "api").glob("*.py")
    ),  # not the playground's, which run programs
    *(f"{(_PACKAGE / name).as_posix()}/" for name in ("engine", "trials")),
    *_DATA,
)
_CONTEXT = "(WatchContext)"
"""Name, in Dynamo's message, of the context manager of a watch, which Dynamo does not enter."""

_TORCH = f"{(_PACKAGE / '_torch').as_posix()}/"
ROOT = f"{_TORCH}session.py"
"""The file that calls the captured program."""


def skip_own_files(undo: Undo) -> None:
    """Make Dynamo skip those of our functions that a program can call, until ``undo``."""
    paths = [path for path in _SKIPPED if path not in trace_rules.SKIP_DIRS]  # empty in a nested capture
    undo.add(_put_back, paths)
    trace_rules.SKIP_DIRS += paths
    trace_rules._recompile_re()


def _put_back(paths: list[str]) -> None:
    """Remove our paths from Dynamo's list and keep those that the program added."""
    trace_rules.SKIP_DIRS[:] = [path for path in trace_rules.SKIP_DIRS if path not in paths]
    trace_rules._recompile_re()


def is_break(reason: str) -> bool:
    """Return True if the reason of a graph break is a call of compile_lens."""
    text = reason.replace("\\", "/")
    return _CONTEXT in text or any(path in text for path in _SKIPPED)


def is_within(frame: types.FrameType | None) -> bool:
    """Return True for a frame of ours in a captured program, and for frames that it calls."""
    file = _file(frame)
    if file.startswith(_TORCH):
        return True
    while frame is not None and not file.startswith(ROOT):
        if file.startswith((*_DATA, *_OWN_CALLS)):
            return True
        frame = frame.f_back
        file = _file(frame)
    return False


def _file(frame: types.FrameType | None) -> str:
    return "" if frame is None else frame.f_code.co_filename.replace("\\", "/")
