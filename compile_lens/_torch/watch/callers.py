"""From where what Dynamo is asked about was called, by the stack of this thread."""

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
from .observers import unnoticed


@unnoticed
def caller() -> Frame | None:
    """The line of the program from where the frame was called that Dynamo is asked about."""
    return _first_beyond(_between)


def program_line() -> Frame | None:
    """The innermost line of the program's own, through whatever packages."""
    return _first_beyond(library)


def _first_beyond(others: Callable[[str], bool]) -> Frame | None:
    for frame in _above():
        code = frame.f_code
        if not others(code.co_filename):
            return Frame(code.co_filename, frame.f_lineno or 0, eager_lines.plain(code.co_name))
    return None


@unnoticed
def torch_caller() -> types.CodeType | None:
    """What called the frame that Dynamo is asked about, be it torch's; what every call of a module goes through is
    passed over."""
    for frame in _above():
        file = frame.f_code.co_filename
        if not asking(file) and not file.startswith(_DYNAMO) and not file.endswith(_CALLS_MODULES):
            return frame.f_code
    return None


_DYNAMO = f"{source_places.TORCH}_dynamo"
_CALLS_MODULES = "/torch/nn/modules/module.py"


def _above() -> Iterator[types.FrameType]:
    frame = sys._getframe(2)
    while frame is not None:
        yield frame
        frame = frame.f_back  # type: ignore[assignment]


def asking(file: str) -> bool:
    """Whether a file is one of those that stand between a frame and its caller while Dynamo is asked about it."""
    ours = "/compile_lens/_torch/" in file.replace("\\", "/") or file.startswith("<compile_lens")
    return ours or file == convert_frame.__file__


def library(file: str) -> bool:
    """Whether a file is not the program's own: one of the standard library, of an installed package, of torch, or
    one of ours, into which Dynamo looks where a compiled function opens a watch."""
    return elsewhere(file) or source_places.is_torch_file(file)


def elsewhere(file: str) -> bool:
    """The same, but torch's layers and optimizers are the program's."""
    ours = file.startswith(_OURS) and not file.startswith(_EXERCISES)
    return ours or is_foreign(file)


_OURS = os.path.join(os.path.dirname(errors.__file__), "")
_EXERCISES = os.path.join(_OURS, "course", "")
"""What a course asks for is a program's."""


def _between(file: str) -> bool:
    return (
        source_places.is_torch_file(file)
        or source_places.is_internal(file)
        or file.startswith("<compile_lens")
    )
