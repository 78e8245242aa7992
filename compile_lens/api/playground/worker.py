"""The child of the playground: it captures programs, one after another, until an interrupt says that one is not wanted.

``session.py`` starts it and talks with it in JSON: nothing is unpickled on either side.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import sys
import time
import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ...child import worker
from ...child.limits import limit_memory
from .faults import error_data
from .settings import Program, Settings

if TYPE_CHECKING:
    from ...results.capture import Capture
    from ...results.comparison import Comparison

MEMORY = "COMPILE_LENS_PLAY_MEMORY"
"""Variable with the bytes of private memory that the child may have."""


def main(replies: int) -> None:
    """Serve until the playground closes the pipe, or is silent for long."""
    limit_memory(int(os.environ.pop(MEMORY)))
    gc.set_threshold(worker.YOUNG, 20, 100)  # it collects after each request
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
    @contextlib.contextmanager
    def put_off(cls) -> Iterator[None]:
        """For the duration, nothing is ended: half a message would be read as one."""
        was, cls.running = cls.running, False
        try:
            yield
        finally:
            cls.running = was

    @classmethod
    def hear(cls, *_: Any) -> None:
        now = time.monotonic()
        if cls.running and now - cls.last > AGAIN:  # one at once would disturb what puts everything back
            cls.last = now
            raise KeyboardInterrupt


class EarlyReports:
    """Reports the graphs of a program that were traced, each time that one is about to be lowered.

    Attributes:
        seconds: that it took.
    """

    REST = 0.25
    """Seconds between two reports, at least: a program may have many graphs."""

    def __init__(self, report: worker.Report) -> None:
        self._report = report
        self._last = -self.REST
        self.seconds = 0.0

    def __call__(self, traced: Callable[[], Capture]) -> None:
        from ...views.live import page

        began = time.monotonic()
        if began - self._last < self.REST:
            return
        parts = page.traced_parts(traced())
        with Interrupt.put_off():
            self._report({"traced": parts})
        self._last = time.monotonic()
        self.seconds += self._last - began


def _reap() -> None:
    """Take the status of processes that ended: one that an interrupt met while it was started, such as Graphviz's, is
    known to nobody."""
    if sys.platform != "win32":
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


FIRST = "import torch\ninputs = [torch.ones(2)]\ndef f(x): return x.sin()\n"
"""Program that a child captures before the reader's. It draws no random numbers."""


class Answerer:
    """Answers requests: ``{"program": …, "file": …}``, with ``"page": true`` for the page as one file, with ``"early":
    true`` for the graphs that were traced before they are lowered."""

    def prepare(self) -> None:
        """Import what captures need, and make one: what torch and the page build at their first use is then among what
        the collector, which runs after each answer, need not look through."""
        with worker.quick_imports():
            from ..._torch import preload as preload
            from ..._torch.targets import torch_settings
            from ...layout import engine
            from . import program_capture as program_capture

            self.settings = torch_settings.snapshot()[0]
            engine.stay()
            gc.freeze()
            with contextlib.suppress(Exception):  # the reader's program says what is wrong
                self._answer({"program": {"source": FIRST}, "file": "first.py"}, lambda _: None)
            gc.collect()  # what was only this program's

    def answer(self, data: bytes, report: worker.Report) -> dict[str, Any]:
        began = time.perf_counter()
        request = json.loads(data)
        _reap()
        try:
            Interrupt.running = True
            try:
                reply = self._answer(request, report)
            finally:
                Interrupt.running = False
        except KeyboardInterrupt:
            return {"interrupted": True}
        except BaseException as error:
            reply = {"error": error_data(error, request["file"])}
        return {"seconds": time.perf_counter() - began, **reply}

    def _answer(self, request: dict[str, Any], report: worker.Report) -> dict[str, Any]:
        from .program_capture import MEANINGS, ProgramCapture, capture_program

        file, program = request["file"], Program.read(request["program"])
        captures: list[ProgramCapture] = []
        early = EarlyReports(report) if request.get("early") and not program.settings.beside else None

        def capture(settings: Settings) -> Capture:
            captures.append(capture_program(Program(program.source, settings), file, self.settings, early))
            return captures[-1].capture

        fault = None
        live: types.ModuleType
        shown: Capture | Comparison | None
        if program.settings.beside:
            from ...views.live import compare as live
            from .two_targets import comparison_of

            shown, fault = comparison_of(program.settings, capture, file)
            if shown is None:
                return {"error": fault}
        else:
            from ...views.live import page as live

            shown = capture(program.settings)
        if request.get("page"):
            return {"page": live.page(shown)}
        first = captures[0]
        return {
            "parts": live.plain_parts(shown),
            "reported": early.seconds if early else 0.0,
            **({"error": fault} if fault else {}),
            "functions": first.functions,
            "function": first.function,
            "own_inputs": first.own_inputs,
            "inputs": first.capture.inputs,
            "switches": MEANINGS,
        }
