"""A session of the playground: the newest program is captured in a child, and ends the capture of the one before."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..child.child import Child, TooLong
from ..errors import ChildError
from . import worker

GRACE = 1.0
"""Seconds in which a child must answer an interrupt; then it is ended, and another takes its place."""

START = 120.0
"""Seconds that a child may take to start."""

WORKER = "compile_lens.playground.worker"


@dataclass(frozen=True)
class Limits:
    """Limits of one capture: seconds, and bytes of private memory of the child."""

    seconds: float = 10.0
    memory: int = 8 << 30


class Captor:
    """Runs requests in one child process, in a folder of its own. Other threads may ``interrupt`` it."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self._folder, self._limits = folder, limits
        self._child: Child | None = None
        self._lock = threading.Lock()
        self._running = False
        self._timers: list[threading.Timer] = []
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

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the child's answer; ``{"interrupted": True}`` or ``{"stopped": …}`` where it was ended before."""
        self.start()
        child = self._child
        assert child is not None
        limit = self._limits.seconds + (START if child.new else 0.0)
        late = threading.Event()

        def stop() -> None:
            late.set()
            self.interrupt()

        timer = threading.Timer(limit, stop)
        timer.daemon = True
        with self._lock:
            self._running = True
        timer.start()
        try:
            answer = child.ask(json.dumps(request).encode(), limit + GRACE)
        except TooLong:
            return {"stopped": "time"}
        except ChildError as error:
            if self.closed or self._ended is child:
                return {"interrupted": True}
            return {"stopped": "ended", "message": str(error)}
        finally:
            timer.cancel()
            with self._lock:
                self._running = False
                for one in self._timers:
                    one.cancel()
                self._timers.clear()
        return {"stopped": "time"} if late.is_set() and "interrupted" in answer else answer

    _ended: Child | None = None
    """The child that was ended because it did not answer an interrupt."""

    def interrupt(self) -> None:
        """End the capture that runs, if one does."""
        with self._lock:
            child = self._child
            if not self._running or child is None or child.new:
                return
            with contextlib.suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGINT)
            timer = threading.Timer(GRACE, self._give_up, (child,))
            timer.daemon = True
            self._timers.append(timer)
            timer.start()

    def _give_up(self, child: Child) -> None:
        with self._lock:
            if self._running and self._child is child:
                self._ended = child
                child.end()

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


class Session:
    """The programs of one page. Each is answered by ``send``, unless a newer one came before.

    Args:
        send: takes each answer, with the number of its program as ``of``.
    """

    def __init__(self, captor: Captor, file: str, send: Callable[[dict[str, Any]], Any]) -> None:
        self._captor, self._file, self._send = captor, file, send
        self._wanted: dict[str, Any] | None = None
        self._changed = asyncio.Event()
        self._parts: dict[str, str] = {}

    def want(self, request: dict[str, Any]) -> None:
        """Answer this request next; what runs is interrupted."""
        self._wanted = request
        self._changed.set()
        self._captor.interrupt()

    async def run(self) -> None:
        """Answer requests until this is cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            request, self._wanted = self._wanted, None
            if request is None:
                continue
            number = request.pop("edit")
            if not self._captor.ready:
                await self._send({"of": number, "starting": True})
            answer = await asyncio.to_thread(self._captor.ask, {**request, "file": self._file})
            if "interrupted" not in answer:
                await self._send({"of": number, **self._changes(answer)})

    def _changes(self, answer: dict[str, Any]) -> dict[str, Any]:
        """An answer with only the parts of the page that differ from those that were sent last."""
        if "parts" not in answer:
            return answer
        parts = answer["parts"]
        changed = {name: text for name, text in parts.items() if self._parts.get(name) != text}
        self._parts = parts
        return {**answer, "parts": changed, "names": list(parts)}
