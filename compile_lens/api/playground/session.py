"""Session of the playground: the newest program is captured, and interrupts the capture of an older one."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable
from typing import Any

from .captures import Captures


class Session:
    """The programs of one page. Each is answered through ``send``, unless a newer one has replaced it.

    Args:
        send: called with each answer, with the number of its program as ``of``.
    """

    def __init__(self, captures: Captures, file: str, send: Callable[[dict[str, Any]], Any]) -> None:
        self._captures, self._file, self._send = captures, file, send
        self._wanted: dict[str, Any] = {}
        self._changed = asyncio.Event()
        self._unwanted = threading.Event()
        self._parts: dict[str, str] = {}

    def want(self, request: dict[str, Any]) -> None:
        """Answer this request next, and interrupt the running one."""
        self._wanted = request
        self._changed.set()
        self._unwanted.set()

    def leave(self) -> None:
        """Interrupt the running request, whose page has left."""
        self._unwanted.set()

    async def run(self) -> None:
        """Answer requests until cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            request, self._unwanted = dict(self._wanted), threading.Event()
            number = request.pop("edit")
            if not self._captures.ready(request):
                await self._send({"of": number, "starting": True})
            request["file"] = self._file
            early = functools.partial(self._early, asyncio.get_running_loop(), number)
            answer = await asyncio.to_thread(self._captures.ask, request, self._unwanted, early)
            if not self._changed.is_set() and "interrupted" not in answer:
                await self._send({"of": number, **self._changes(answer)})

    def _early(self, loop: asyncio.AbstractEventLoop, number: int, report: dict[str, Any]) -> None:
        """Send a report that precedes the answer, unless there is a newer program. Runs in a thread."""
        if not self._unwanted.is_set():
            asyncio.run_coroutine_threadsafe(self._send({"of": number, **report}), loop)

    def _changes(self, answer: dict[str, Any]) -> dict[str, Any]:
        """Return an answer with only the parts of the page that have changed since the last one."""
        if "parts" not in answer:
            return answer
        parts = answer["parts"]
        changed = {name: text for name, text in parts.items() if self._parts.get(name) != text}
        self._parts = parts
        return {**answer, "parts": changed, "names": list(parts)}
