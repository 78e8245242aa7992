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

RECORDS = "COMPILE_LENS_PLAY_RECORDS"
"""Variable that is not empty in a child under another torch, which lacks what pages need: it answers with records, and
the child under the torch of the playground makes pages of them."""


def main(replies: int) -> None:
    """Serve until the playground closes the pipe, or is silent for long."""
    limit_memory(int(os.environ.pop(MEMORY)))
    gc.set_threshold(worker.GC_THRESHOLD, 20, 100)  # it collects after each request
    signal.signal(signal.SIGINT, Interrupt.hear)
    answerer = Answerer(bool(os.environ.pop(RECORDS)))
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

    def __init__(self, report: worker.Report, records: bool) -> None:
        self._report, self._records = report, records
        self._last = -self.REST
        self.seconds = 0.0

    def __call__(self, traced: Callable[[], Capture]) -> None:
        began = time.monotonic()
        if began - self._last < self.REST:
            return
        capture = traced()
        if self._records:
            report = recorded(capture, TRACED, capture.environment.torch)
        else:
            report = shown(capture, TRACED)
        with Interrupt.put_off():
            self._report(report)
        self._last = time.monotonic()
        self.seconds += self._last - began


def _reap() -> None:
    """Take the status of processes that ended: one that an interrupt met while it was started, such as Graphviz's, is
    known to nobody."""
    if sys.platform != "win32":
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


CAPTURE, COMPARISON, TRACED = "capture", "comparison", "traced"
"""Kinds of what a child has captured; the last is a program that is being lowered."""


def recorded(captured: Capture | Comparison, kind: str, torch: str) -> dict[str, Any]:
    """Return what was captured as a record, for the child that makes pages."""
    return {"record": captured.to_json(), "kind": kind, "torch": torch}


def shown(captured: Any, kind: str, whole: bool = False) -> dict[str, Any]:
    """Return the parts of the page of what was captured; or that page as one file, if it is wanted ``whole``."""
    from ...views.live import compare, page

    if kind == TRACED:
        return {"traced": page.traced_parts(captured)}
    live: types.ModuleType = compare if kind == COMPARISON else page
    return {"page": live.page(captured)} if whole else {"parts": live.plain_parts(captured)}


FIRST = "import torch\ninputs = [torch.ones(2)]\ndef f(x): return x.sin()\n"
"""Program that a child captures before the reader's. It draws no random numbers."""


class Answerer:
    """Answers requests: ``{"program": …, "file": …}``, with ``"page": true`` for the page as one file, with ``"early":
    true`` for the graphs that were traced before they are lowered; or ``{"record": …, "kind": …}`` with the answer of a
    child that has ``records`` alone, whose page is wanted."""

    def __init__(self, records: bool) -> None:
        self.records = records

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
            reply = {"error": error_data(error, request.get("file", ""))}
        return {"seconds": time.perf_counter() - began, **reply}

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
    """Return what a record holds. Runs no code of it."""
    from ...results.capture import Capture
    from ...results.comparison import Comparison

    return Comparison.from_json(record) if kind == COMPARISON else Capture.from_json(record)
