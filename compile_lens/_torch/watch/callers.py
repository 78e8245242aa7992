"""The callers of a frame that Dynamo evaluates, from the stack of this thread."""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Callable, Iterator

from torch._dynamo import convert_frame

from ... import errors
from ...record.graph import Frame
from ..frames import eager_lines
from ..frames.skipped_frames import is_foreign
from ..ground import source_places
from .observers import hidden_from_dynamo


@hidden_from_dynamo
def caller() -> Frame | None:
    """Return the program's line that called the frame that Dynamo evaluates."""
    return _first_outside(_is_torch_or_ours)


def program_line() -> Frame | None:
    """Return the innermost line of the program's own, through any packages and generated code."""
    return _first_outside(is_library)


def _first_outside(others: Callable[[str], bool]) -> Frame | None:
    for frame in _outer_frames():
        code = frame.f_code
        if not others(code.co_filename) and not _is_generated(frame):
            return Frame(code.co_filename, frame.f_lineno or 0, eager_lines.plain_name(code.co_name))
    return None


def _is_generated(frame: types.FrameType) -> bool:
    """Return True for the code of a graph, or of a module that Inductor generated."""
    name = str(frame.f_globals.get("__name__", ""))
    return frame.f_code.co_filename.startswith("<eval_with_key>") or name.startswith("torch.")


@hidden_from_dynamo
def torch_caller() -> types.CodeType | None:
    """Return the caller of the frame that Dynamo evaluates, torch's included; frames common to every module call are
    skipped."""
    for frame in _outer_frames():
        file = frame.f_code.co_filename
        if not is_between(file) and not file.startswith(_DYNAMO) and not file.endswith(_CALLS_MODULES):
            return frame.f_code
    return None


_DYNAMO = f"{source_places.TORCH}_dynamo"
_CALLS_MODULES = "/torch/nn/modules/module.py"


def _outer_frames() -> Iterator[types.FrameType]:
    frame = sys._getframe(2)
    while frame is not None:
        yield frame
        frame = frame.f_back  # type: ignore[assignment]


def is_between(file: str) -> bool:
    """Return True if a file's frames stand between a frame and its caller while Dynamo evaluates it."""
    ours = "/compile_lens/_torch/" in file.replace("\\", "/") or file.startswith("<compile_lens")
    return ours or file == convert_frame.__file__


def is_library(file: str) -> bool:
    """Return True if a file is not the program's own: of the standard library, an installed package, torch, or one of
    ours, into which Dynamo looks if a compiled function opens a watch."""
    return is_outside_program(file) or source_places.is_torch_file(file)


def is_outside_program(file: str) -> bool:
    """Like ``is_library``, but torch's layers and optimizers are the program's."""
    ours = file.startswith(_PACKAGE) and not file.startswith(_EXERCISES)
    return ours or is_foreign(file)


_PACKAGE = os.path.join(os.path.dirname(errors.__file__), "")
_EXERCISES = os.path.join(_PACKAGE, "course", "")
"""Exercises of a course are a program's."""


def _is_torch_or_ours(file: str) -> bool:
    return (
        source_places.is_torch_file(file)
        or source_places.is_internal(file)
        or file.startswith("<compile_lens")
    )
