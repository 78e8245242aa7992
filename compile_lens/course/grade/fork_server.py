"""A process that has imported what every student's process needs, and forks one for each notebook.

Importing torch and this package takes most of the time of a mark. The server starts no thread, compiles nothing, and
runs no student's code, so that each student begins with the same state.
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
from .process import START, Submitted

MODULES = (*FIRST, process.WORKER, "compile_lens.api.capture", "compile_lens.engine.remote", "cloudpickle")
"""Modules that students' processes import."""

THREADS = "OPENBLAS_NUM_THREADS"
"""The variable by which NumPy's library of linear algebra starts no threads when it is imported."""


def main(replies: int) -> None:
    """Answer the grader's requests, each a notebook, until it closes the pipe."""
    Nesting.depth -= 1  # a student's process is nested as deep as without this one
    worker.serve(replies, _answer, _prepare)


def _prepare() -> None:
    given = os.environ.get(THREADS)
    os.environ[THREADS] = "1"
    with worker.quick_imports():
        for name in MODULES:
            importlib.import_module(name)
    if given is None:
        del os.environ[THREADS]
    else:
        os.environ[THREADS] = given


def _answer(data: bytes, _report: worker.Report) -> dict[str, Any]:
    request = json.loads(data)
    if not request:  # the first: this process is ready
        return {}
    of = Submitted(**request)
    wording.language(of.language)
    return {key: asdict(mark) for key, mark in process.marks(of, fork.start).items()}


class ForkServer:
    """The server, as the grader sees it. It is started with the first notebook, and again after it ended."""

    def __init__(self) -> None:
        self._child: Child | None = None

    def marks(self, of: Submitted) -> dict[str, Mark]:
        """Return the marks of a notebook."""
        if self._child is None or not self._child.alive:
            self.close()
            self._child = Child(__name__, dict(os.environ), show=False)
        longest = len(of.keys) * (of.seconds + START)
        try:
            if self._child.new:
                self._child.ask(b"{}", START)
            reply = self._child.ask(json.dumps(asdict(of)).encode(), longest)
        except ChildError as error:  # the student's code ended this process's own child, or the system did
            return dict.fromkeys(of.keys, process.ended(error))
        return {
            key: Mark(one["outcome"], tuple(one["reasons"]), tuple(one["figures"]))
            for key, one in reply.items()
        }

    def close(self) -> None:
        """End it."""
        if self._child is not None:
            self._child.close()
            self._child = None
