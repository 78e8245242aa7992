"""The child of the playground: it captures programs, one after another, until an interrupt says that one is not wanted.

``session.py`` starts it and talks with it in JSON: nothing is unpickled on either side.
"""

from __future__ import annotations

import json
import os
import signal
import time
import traceback
from typing import Any

from ...child import worker
from ...child.limits import limit_memory
from ...errors import LensError
from .settings import Program

MEMORY = "COMPILE_LENS_PLAY_MEMORY"
"""Variable with the bytes of private memory that the child may have."""

LONGEST = 2000
"""Characters of a message that is sent."""


def main(replies: int) -> None:
    """Serve until the playground closes the pipe, or is silent for long."""
    limit_memory(int(os.environ.pop(MEMORY)))
    signal.signal(signal.SIGINT, Interrupt.hear)
    answerer = Answerer()
    worker.serve(replies, answerer.answer, answerer.prepare)


AGAIN = 0.5
"""Seconds after which a request that did not end at an interrupt gets the next one: something took the first."""


class Interrupt:
    """Ends the request that runs; between requests it means nothing. The playground repeats it until it is answered."""

    running = False
    last = 0.0

    @classmethod
    def hear(cls, *_: Any) -> None:
        now = time.monotonic()
        if cls.running and now - cls.last > AGAIN:  # one at once would disturb what puts everything back
            cls.last = now
            raise KeyboardInterrupt


class Answerer:
    """Answers requests: ``{"program": …, "file": …}``, with ``"page": true`` for the page as one file."""

    def prepare(self) -> None:
        """Import what captures need, while the reader looks at the page."""
        with worker.quick_imports():
            from ..._torch import preload as preload
            from . import program_capture as program_capture
        from ..._torch.targets import torch_settings

        self.settings = torch_settings.snapshot()[0]

    def answer(self, data: bytes) -> dict[str, Any]:
        began = time.perf_counter()
        try:
            Interrupt.running = True
            try:
                found = self._answer(json.loads(data))
            finally:
                Interrupt.running = False
        except KeyboardInterrupt:
            return {"interrupted": True}
        except BaseException as error:
            found = {"error": error_data(error)}
        return {"seconds": time.perf_counter() - began, **found}

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        from ...results.capture import CaptureError
        from .program_capture import MEANINGS, ProgramError, capture_program

        file = request["file"]
        try:
            made = capture_program(Program.read(request["program"]), file, self.settings)
        except ProgramError as error:
            return {"error": {"type": error.type, "message": str(error)[:LONGEST], "line": error.line}}
        except CaptureError as error:
            return {"error": error_data(error, file)}
        if request.get("page"):
            from ...views.live.page import page

            return {"page": page(made.capture)}
        from ...views.live.page import plain_parts

        return {
            "parts": plain_parts(made.capture),
            "functions": made.functions,
            "function": made.function,
            "own_inputs": made.own_inputs,
            "inputs": made.capture.inputs,
            "switches": MEANINGS,
        }


def _failure(error: Any, file: str) -> dict[str, Any]:
    """Where a function or a stage of the compiler failed."""
    from ...views.words.failed_line import own_frames
    from ...views.words.labels import without_folders
    from ...views.words.outcome import raised

    failure = error.capture.failure
    lines = [frame.line for frame in own_frames(failure) if frame.file == file]
    stage = "" if failure.stage == "run" else f" (in stage {failure.stage})"
    said = without_folders(raised(failure))
    type_, colon, message = said.partition(": ")
    if not colon or not type_.isidentifier():
        type_, message = failure.type, said
    words = "\n".join(filter(None, (message + stage, *without_folders(failure.hint).splitlines())))
    return {"type": type_, "message": words[:LONGEST], "line": lines[-1] if lines else 0}


def error_data(error: BaseException, file: str = "") -> dict[str, Any]:
    """Return an error as plain data: of a capture, with the line of ``file`` that failed; or of no line, such as a
    setting, too little memory, or a fault of our own."""
    from ...results.capture import CaptureError

    if isinstance(error, CaptureError):
        return _failure(error, file)
    if isinstance(error, LensError):
        return {"type": "", "message": str(error)[:LONGEST], "line": 0}
    said = "".join(traceback.format_exception(error))[-LONGEST:] if not isinstance(error, MemoryError) else ""
    return {"type": type(error).__name__, "message": f"{error}\n{said}".strip()[:LONGEST], "line": 0}
