"""A session of the playground: the newest program is captured in a child, and ends the capture of the one before."""

from __future__ import annotations

import asyncio
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

from ...child.child import Child
from ...errors import ChildError
from . import worker

GRACE = 3.0
"""Seconds in which a child must answer an interrupt; then it is ended, and another takes its place."""

BEAT = 0.1
"""Seconds between two interrupts: one is lost on a child that has not begun."""

START = 120.0
"""Seconds that a child may take to start."""

WORKER = "compile_lens.api.playground.worker"


@dataclass(frozen=True)
class Limits:
    """Limits of one capture: seconds, and bytes of private memory of the child."""

    seconds: float = 10.0
    memory: int = 8 << 30


class CaptureProcess:
    """Runs requests in one child process, in a folder of its own."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self._folder, self._limits = folder, limits
        self._child: Child | None = None
        self._lock = threading.Lock()
        self.closed = False

    @property
    def seconds(self) -> float:
        """The limit of one capture."""
        return self._limits.seconds

    @property
    def ready(self) -> bool:
        """True if a child is there that has answered before."""
        return self._child is not None and not self._child.new and self._child.alive

    def start(self) -> None:
        """Start a child if there is none. It imports torch while the reader looks at the page."""
        if self._child is None or not self._child.alive:
            self._forget()
            environment = {
                **os.environ,
                worker.MEMORY: str(self._limits.memory),
                "TMPDIR": str(self._folder),
                "TORCHINDUCTOR_CACHE_DIR": str(self._folder / "inductor"),
                "PYTHONIOENCODING": "utf-8:backslashreplace",
                "PYTHONDONTWRITEBYTECODE": "1",
            }
            with self._lock:
                if self.closed:
                    raise ChildError("the playground is ending")
                self._child = Child(WORKER, environment, str(self._folder), show=False)

    def ask(
        self,
        request: dict[str, Any],
        unwanted: threading.Event,
        early: Callable[[dict[str, Any]], None] | None = None,
    ) -> dict[str, Any]:
        """Return the child's answer; ``{"interrupted": True}`` where it became ``unwanted``, ``{"stopped": …}`` where a
        limit or its own program ended it. ``early`` takes what the child reports before it."""
        try:
            self.start()
        except ChildError as error:
            return {"interrupted": True} if self.closed else {"stopped": "ended", "message": str(error)}
        child = self._child
        assert child is not None
        limit = self._limits.seconds + (START if child.new else 0.0)
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
            return {"stopped": "ended", "message": str(error)}
        finally:
            answered.set()
            watch.join()
        return {"stopped": "time"} if late.is_set() and "interrupted" in answer else answer

    def _forget(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None

    def close(self) -> None:
        """End the child, and start no other."""
        with self._lock:
            self.closed = True
            if self._child is not None:
                self._child.end()


def _watch(
    child: Child, limit: float, answered: threading.Event, late: threading.Event, unwanted: threading.Event
) -> None:
    """Interrupt a request that is unwanted or late until it is answered; end the child if that takes too long."""
    begun = time.monotonic()
    while not unwanted.wait(BEAT / 2):
        if answered.is_set():
            return
        if time.monotonic() - begun > limit:
            late.set()
            break
    given_up = time.monotonic() + GRACE
    while not answered.is_set():
        if child.new and not late.is_set():  # it imports torch, for whichever program comes next
            given_up = time.monotonic() + GRACE
        elif child.new or time.monotonic() > given_up:
            child.end()
            return
        else:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGINT)
        answered.wait(BEAT)


class Session:
    """The programs of one page. Each is answered by ``send``, unless a newer one came before.

    Args:
        send: takes each answer, with the number of its program as ``of``.
    """

    def __init__(self, captures: CaptureProcess, file: str, send: Callable[[dict[str, Any]], Any]) -> None:
        self._captures, self._file, self._send = captures, file, send
        self._wanted: dict[str, Any] = {}
        self._changed = asyncio.Event()
        self._unwanted = threading.Event()
        self._parts: dict[str, str] = {}

    def want(self, request: dict[str, Any]) -> None:
        """Answer this request next; what runs is interrupted."""
        self._wanted = request
        self._changed.set()
        self._unwanted.set()

    def leave(self) -> None:
        """End what runs: nobody waits for it."""
        self._unwanted.set()

    async def run(self) -> None:
        """Answer requests until this is cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            request, self._unwanted = dict(self._wanted), threading.Event()
            number = request.pop("edit")
            if not self._captures.ready:
                await self._send({"of": number, "starting": True})
            request["file"] = self._file
            early = functools.partial(self._early, asyncio.get_running_loop(), number)
            answer = await asyncio.to_thread(self._captures.ask, request, self._unwanted, early)
            if not self._changed.is_set() and "interrupted" not in answer:
                await self._send({"of": number, **self._changes(answer)})

    def _early(self, loop: asyncio.AbstractEventLoop, number: int, report: dict[str, Any]) -> None:
        """Send what the child reports before its answer, unless a newer program came. Runs in a thread."""
        if not self._unwanted.is_set():
            asyncio.run_coroutine_threadsafe(self._send({"of": number, **report}), loop)

    def _changes(self, answer: dict[str, Any]) -> dict[str, Any]:
        """An answer with only the parts of the page that differ from those that were sent last."""
        if "parts" not in answer:
            return answer
        parts = answer["parts"]
        changed = {name: text for name, text in parts.items() if self._parts.get(name) != text}
        self._parts = parts
        return {**answer, "parts": changed, "names": list(parts)}
