"""Child process of the playground that captures programs; a newer program or a limit interrupts it."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...child import launcher
from ...child.child import Child
from ...errors import ChildError
from ...trials.environments import Environment
from . import worker

GRACE_SECONDS = 3.0
"""Seconds that a child has to respond to an interrupt before it is killed and replaced."""

POLL_SECONDS = 0.1
"""Seconds between two interrupts; they are repeated, since one is lost before the request runs."""

START_SECONDS = 120.0
"""Time limit for the start of a child, in seconds."""

WORKER = "compile_lens.api.playground.worker"


@dataclass(frozen=True)
class Limits:
    """Limits of one capture: time in seconds, and the child's private memory in bytes."""

    seconds: float = 10.0
    memory: int = 8 << 30


class CaptureProcess:
    """One child process, in its own folder, that runs requests.

    Args:
        folder: working folder, created if needed.
        environment: environment whose Python runs the child, which then answers with records; None for this process's
            Python.
    """

    def __init__(self, folder: Path, limits: Limits, environment: Environment | None = None) -> None:
        self._folder, self._limits = folder, limits
        self.environment = environment
        self._child: Child | None = None
        self._lock = threading.Lock()
        self.closed = False

    @property
    def ready(self) -> bool:
        """True if there is a live child that has answered before."""
        return self._child is not None and not self._child.new and self._child.alive

    def start(self) -> None:
        """Start a child if there is none. It imports torch while the user looks at the page."""
        if self._child is None or not self._child.alive:
            self.forget()
            self._folder.mkdir(exist_ok=True)
            other = self.environment
            environment = {
                **(os.environ if other is None else _variables_of_any_python()),
                worker.MEMORY: str(self._limits.memory),
                worker.RECORDS: "" if other is None else "1",
                "TMPDIR": str(self._folder),
                "TORCHINDUCTOR_CACHE_DIR": str(self._folder / "inductor"),
                "PYTHONIOENCODING": "utf-8:backslashreplace",
                "PYTHONDONTWRITEBYTECODE": "1",
            }
            with self._lock:
                if self.closed:
                    raise ChildError("the playground is shutting down")
                start = functools.partial(launcher.start, python="" if other is None else str(other.python))
                self._child = Child(WORKER, environment, str(self._folder), show=False, start=start)

    def ask(
        self,
        request: dict[str, Any],
        unwanted: threading.Event,
        early: Callable[[dict[str, Any]], None] | None = None,
        spent: float = 0.0,
    ) -> dict[str, Any]:
        """Return the child's answer; ``{"interrupted": True}`` if the request became ``unwanted``, ``{"stopped": …}``
        if a limit or its own program ended the child. ``early`` is called with reports before the answer; ``spent`` is
        the part of the time limit already used, in seconds."""
        try:
            self.start()
        except ChildError as error:
            return {"interrupted": True} if self.closed else _ended(error, began=False)
        child = self._child
        assert child is not None
        limit = max(0.0, self._limits.seconds - spent) + (START_SECONDS if child.new else 0.0)
        answered, late = threading.Event(), threading.Event()
        watch = threading.Thread(target=_watch, args=(child, limit, answered, late, unwanted), daemon=True)
        watch.start()
        try:
            answer = child.ask(json.dumps(request).encode(), early=early)
        except ChildError as error:
            if late.is_set():
                return {"stopped": "time"}
            if self.closed or unwanted.is_set():
                return {"interrupted": True}
            return _ended(error, began=not child.new)
        finally:
            answered.set()
            watch.join()
        return {"stopped": "time"} if late.is_set() and "interrupted" in answer else answer

    def forget(self) -> None:
        """End the child, which is idle."""
        if self._child is not None:
            self._child.close()
            self._child = None

    def close(self) -> None:
        """End the child, and start no other."""
        with self._lock:
            self.closed = True
            if self._child is not None:
                self._child.end()


def _ended(error: ChildError, began: bool) -> dict[str, Any]:
    """Return the answer for a child that ended, or that did not start."""
    return {"stopped": "ended", "message": str(error), "began": began}


def _variables_of_any_python() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTHONHOME"}


def _watch(
    child: Child, limit: float, answered: threading.Event, late: threading.Event, unwanted: threading.Event
) -> None:
    """Interrupt an unwanted or late request repeatedly until it is answered; kill the child if that takes too long."""
    start = time.monotonic()
    while not unwanted.wait(POLL_SECONDS / 2):
        if answered.is_set():
            return
        if time.monotonic() - start > limit:
            late.set()
            break
    deadline = time.monotonic() + GRACE_SECONDS
    while not answered.is_set():
        if child.new and not late.is_set():  # still importing torch, which the next program needs too
            deadline = time.monotonic() + GRACE_SECONDS
        elif child.new or time.monotonic() > deadline:
            child.end()
            return
        else:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGINT)
        answered.wait(POLL_SECONDS)
