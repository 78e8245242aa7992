"""Child process of the playground: it captures programs one after another; an interrupt cancels the current one.

``capture_process.py`` starts it. Requests and replies are JSON: neither side unpickles anything.
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
"""Environment variable with the child's limit of private memory, in bytes."""

RECORDS = "COMPILE_LENS_PLAY_RECORDS"
"""Environment variable that is not empty in a child under another torch, which lacks what pages need: it answers with
records, from which the child under the playground's torch creates pages."""


def main(replies: int) -> None:
    """Serve until the playground closes the pipe or sends nothing for ``IDLE_SECONDS``."""
    limit_memory(int(os.environ.pop(MEMORY)))
    gc.set_threshold(worker.GC_THRESHOLD, 20, 100)  # ``serve`` collects after each request
    signal.signal(signal.SIGINT, Interrupt.handle)
    answerer = Answerer(bool(os.environ.pop(RECORDS)))
    worker.serve(replies, answerer.answer, answerer.prepare)


REPEAT_SECONDS = 0.5
"""Seconds before an interrupt is raised again in a request that did not end: the first one was swallowed."""


class Interrupt:
    """SIGINT handler that ends the running request and does nothing between requests. The playground repeats the signal
    until the request is answered."""

    running = False
    last = 0.0

    @classmethod
    @contextlib.contextmanager
    def postponed(cls) -> Iterator[None]:
        """Ignore interrupts for the duration, so that a message is not cut in half."""
        was, cls.running = cls.running, False
        try:
            yield
        finally:
            cls.running = was

    @classmethod
    def handle(cls, *_: Any) -> None:
        now = time.monotonic()
        if cls.running and now - cls.last > REPEAT_SECONDS:  # too soon, it would disturb the cleanup
            cls.last = now
            raise KeyboardInterrupt


class EarlyReports:
    """Callback that reports the traced graphs of a program each time one is about to be lowered.

    Attributes:
        seconds: time spent on reports.
    """

    INTERVAL_SECONDS = 0.25
    """Minimum seconds between two reports, since a program may have many graphs."""

    def __init__(self, report: worker.Report, records: bool) -> None:
        self._report, self._records = report, records
        self._last = -self.INTERVAL_SECONDS
        self.seconds = 0.0

    def __call__(self, traced: Callable[[], Capture]) -> None:
        start = time.monotonic()
        if start - self._last < self.INTERVAL_SECONDS:
            return
        capture = traced()
        if self._records:
            report = recorded(capture, TRACED, capture.environment.torch)
        else:
            report = shown(capture, TRACED)
        with Interrupt.postponed():
            self._report(report)
        self._last = time.monotonic()
        self.seconds += self._last - start


def _reap() -> None:
    """Collect the status of ended child processes, such as Graphviz's, that an interrupt orphaned during their
    start."""
    if sys.platform != "win32":
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


CAPTURE, COMPARISON, TRACED = "capture", "comparison", "traced"
"""Kinds of results of a child; ``TRACED`` is a program that is still being lowered."""


def recorded(captured: Capture | Comparison, kind: str, torch: str) -> dict[str, Any]:
    """Return a capture or comparison as a record, for the child that creates pages."""
    return {"record": captured.to_json(), "kind": kind, "torch": torch}


def shown(captured: Any, kind: str, whole: bool = False) -> dict[str, Any]:
    """Return the parts of the page of a capture or comparison; if ``whole``, the page as one file."""
    from ...views.live import compare, page

    if kind == TRACED:
        return {"traced": page.traced_parts(captured)}
    live: types.ModuleType = compare if kind == COMPARISON else page
    return {"page": live.page(captured)} if whole else {"parts": live.plain_parts(captured)}


FIRST = "import torch\ninputs = [torch.ones(2)]\ndef f(x): return x.sin()\n"
"""Program that a child captures first, as a warm-up. It draws no random numbers."""


class Answerer:
    """Answers to requests: ``{"program": …, "file": …}``, with ``"page": true`` for the page as one file and ``"early":
    true`` for reports of traced graphs before they are lowered; or ``{"record": …, "kind": …}`` for the page of a
    record from a child that answers with ``records``."""

    def __init__(self, records: bool) -> None:
        self.records = records

    def prepare(self) -> None:
        """Import what captures need, and capture ``FIRST``, so that objects that torch and the page create at first use
        are frozen: the collector, which runs after each answer, skips them."""
        with worker.quick_imports():
            from ..._torch import preload as preload
            from ..._torch.targets import torch_settings
            from ...layout import engine
            from . import program_capture as program_capture

            self.settings = torch_settings.snapshot()[0]
            engine.keep_process()
            gc.freeze()
            with contextlib.suppress(Exception):  # the user's program will report the problem
                self._answer({"program": {"source": FIRST}, "file": "first.py"}, lambda _: None)
            gc.collect()  # objects of this program only

    def answer(self, data: bytes, report: worker.Report) -> dict[str, Any]:
        start = time.perf_counter()
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
            reply = {"error": error_data(error, request.get("file", ""))}
        return {"seconds": time.perf_counter() - start, **reply}

    def _answer(self, request: dict[str, Any], report: worker.Report) -> dict[str, Any]:
        whole = bool(request.get("page"))
        if "record" in request:
            return shown(_opened(request["record"], request["kind"]), request["kind"], whole)
        from .program_capture import MEANINGS, ProgramCapture, capture_program

        file, program = request["file"], Program.read(request["program"])
        captures: list[ProgramCapture] = []
        early = None
        if request.get("early") and not program.settings.beside:
            early = EarlyReports(report, self.records)

        def capture(settings: Settings) -> Capture:
            captures.append(capture_program(Program(program.source, settings), file, self.settings, early))
            return captures[-1].capture

        fault = None
        captured: Capture | Comparison | None
        if program.settings.beside:
            from .two_targets import comparison_of

            captured, fault = comparison_of(program.settings, capture, file)
            if captured is None:
                return {"error": fault}
        else:
            captured = capture(program.settings)
        kind = COMPARISON if program.settings.beside else CAPTURE
        first = captures[0]
        torch = first.capture.environment.torch
        answer = recorded(captured, kind, torch) if self.records else shown(captured, kind, whole)
        return {
            **answer,
            "reported": early.seconds if early else 0.0,
            **({"error": fault} if fault else {}),
            "functions": first.functions,
            "function": first.function,
            "own_inputs": first.own_inputs,
            "inputs": first.capture.inputs,
            "torch": torch,
            "switches": MEANINGS,
        }


def _opened(record: str, kind: str) -> Capture | Comparison:
    """Return the capture or comparison in a record. Runs no code of it."""
    from ...results.capture import Capture
    from ...results.comparison import Comparison

    return Comparison.from_json(record) if kind == COMPARISON else Capture.from_json(record)
