"""Errors of a program and of its capture as plain data, with the line in the editor."""

from __future__ import annotations

import traceback
from typing import Any

from ...errors import LensError

MAX_MESSAGE_LENGTH = 2000
"""Maximum length of a message that is sent."""


def _failure(error: Any, file: str) -> dict[str, Any]:
    """Return the failure of a function or of a compiler stage as plain data."""
    from ...views.words.failed_line import own_frames
    from ...views.words.labels import without_folders
    from ...views.words.outcome import raised

    failure = error.capture.failure
    lines = [frame.line for frame in own_frames(failure) if frame.file == file]
    stage = "" if failure.stage == "run" else f" (in stage {failure.stage})"
    text = without_folders(raised(failure))
    type_, colon, message = text.partition(": ")
    if not colon or not type_.isidentifier():
        type_, message = failure.type, text
    words = "\n".join(filter(None, (message + stage, *without_folders(failure.hint).splitlines())))
    return {"type": type_, "message": words[:MAX_MESSAGE_LENGTH], "line": lines[-1] if lines else 0}


def error_data(error: BaseException, file: str = "") -> dict[str, Any]:
    """Return an error as plain data. Errors of a program or a capture have the line of ``file`` that failed; others (a
    setting, out of memory, an internal error) have line 0."""
    from ...results.capture import CaptureError
    from .program_capture import ProgramError

    if isinstance(error, ProgramError):
        return {"type": error.type, "message": str(error)[:MAX_MESSAGE_LENGTH], "line": error.line}
    if isinstance(error, CaptureError):
        return _failure(error, file)
    if isinstance(error, LensError):
        return {"type": "", "message": str(error)[:MAX_MESSAGE_LENGTH], "line": 0}
    trace = (
        "".join(traceback.format_exception(error))[-MAX_MESSAGE_LENGTH:]
        if not isinstance(error, MemoryError)
        else ""
    )
    return {
        "type": type(error).__name__,
        "message": f"{error}\n{trace}".strip()[:MAX_MESSAGE_LENGTH],
        "line": 0,
    }
