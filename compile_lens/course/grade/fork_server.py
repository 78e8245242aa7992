"""A server process that has imported what students' processes need and forks one for each notebook.

Importing torch and this package takes most of the time of a mark. The server starts no threads, compiles nothing and
runs no student code, so every student starts from the same state.
"""

from __future__ import annotations

import importlib
import json
import os
from dataclasses import asdict
from typing import Any

from ...child import fork, worker
from ...child.child import Child
from ...child.nesting import Nesting
from ...engine.entry import FIRST
from ...errors import ChildError
from .. import wording
from . import process
from .marks import Mark
from .process import START_SECONDS, Submitted

MODULES = (*FIRST, process.WORKER, "compile_lens.api.capture", "compile_lens.engine.remote", "cloudpickle")
"""Modules that the server imports before the first fork."""

THREADS_VARIABLE = "OPENBLAS_NUM_THREADS"
"""Environment variable that, set to 1, keeps NumPy's OpenBLAS from starting threads when it is imported."""


def main(replies: int) -> None:
    """Answer the grader's requests, each a notebook, until it closes the pipe."""
    Nesting.depth -= 1  # so that this server does not count in the nesting depth of a student's process
    worker.serve(replies, _answer, _prepare)


def _prepare() -> None:
    given = os.environ.get(THREADS_VARIABLE)
    os.environ[THREADS_VARIABLE] = "1"
    with worker.quick_imports():
        for name in MODULES:
            importlib.import_module(name)
    if given is None:
        del os.environ[THREADS_VARIABLE]
    else:
        os.environ[THREADS_VARIABLE] = given


def _answer(data: bytes, _report: worker.Report) -> dict[str, Any]:
    request = json.loads(data)
    if not request:  # the first request, which only waits until this process is ready
        return {}
    of = Submitted(**request)
    wording.language(of.language)
    return {key: asdict(mark) for key, mark in process.marks(of, fork.start).items()}


class ForkServer:
    """The grader's handle on the server, which is started for the first notebook and again whenever it has ended."""

    def __init__(self) -> None:
        self._child: Child | None = None

    def marks(self, of: Submitted) -> dict[str, Mark]:
        """Return the marks of a notebook by exercise."""
        if self._child is None or not self._child.alive:
            self.close()
            self._child = Child(__name__, dict(os.environ), show=False)
        longest = len(of.keys) * (of.seconds + START_SECONDS)
        try:
            if self._child.new:
                self._child.ask(b"{}", START_SECONDS)
            reply = self._child.ask(json.dumps(asdict(of)).encode(), longest)
        except ChildError as error:  # the student's code or the system ended the server
            return dict.fromkeys(of.keys, process.ended(error))
        return {
            key: Mark(one["outcome"], tuple(one["reasons"]), tuple(one["figures"]))
            for key, one in reply.items()
        }

    def close(self) -> None:
        """End the server if it was started."""
        if self._child is not None:
            self._child.close()
            self._child = None
