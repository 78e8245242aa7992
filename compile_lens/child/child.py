"""One child process, as the caller sees it: it is started, queried, read and ended."""

from __future__ import annotations

import contextlib
import json
import math
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import ChildError
from . import launcher, lifetime, message
from .fork import ForkedProcess
from .output import OutputReader

BEAT = 0.5
"""Seconds between two looks at a child that says nothing."""

STOPPED = 20.0
"""Seconds for which a child may be held by a signal before it is given up."""


Start = Callable[
    [str, Mapping[str, str], Sequence[int], str | None],
    tuple[subprocess.Popen[bytes] | ForkedProcess, int],
]
"""Starts a process: ``launcher.start`` a new one, ``fork.start`` a fork of this one."""


class TooLong(ChildError):
    """The child process did not answer within the time that the caller gave it, and was ended."""


class Child:
    """One process that answers requests, one at a time, until it is closed.

    Args:
        module: its ``main`` answers, with ``serve`` of ``worker.py``.
        environment: all of its variables.
        folder: where it stands; ``None``: where the caller does.
        show: whether what it prints during a request is printed here. What it wrote last is remembered either way.
        start: starts the process, under the Python of another environment too.
    """

    leaving = False
    """True while this program is ending, and every child with it."""

    def __init__(
        self,
        module: str,
        environment: Mapping[str, str],
        folder: str | None = None,
        show: bool = True,
        start: Start = launcher.start,
    ) -> None:
        self._show = show
        self.owner = os.getpid()
        self.known: dict[str, int] = {}
        self.registered: frozenset[str] = frozenset()
        self.busy = False
        self._number = message.READY
        self._come = bytearray()
        self._held_since: float | None = None
        self._replies, theirs = os.pipe()
        try:
            self._process, self._life = start(module, environment, (theirs,), folder)
        except OSError as error:
            os.close(self._replies)
            program = error.filename or sys.executable
            raise ChildError(f"no child process could be started with {program!r}: {error}") from error
        finally:
            os.close(theirs)
        pipes = [self._process.stdin, self._process.stdout, self._process.stderr]
        self._requests, *outputs = [pipe.fileno() for pipe in pipes if pipe is not None]
        self._outputs = [OutputReader(name, fd) for name, fd in zip(("stdout", "stderr"), outputs)]
        for fd in (self._requests, self._replies):
            os.set_blocking(fd, False)

    @property
    def new(self) -> bool:
        """True until the first request."""
        return self._number == message.READY

    @property
    def pid(self) -> int:
        """The number of its process, which leads a session of its own."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """True if it can take a request."""
        if self.owner != os.getpid() or self._process.returncode is not None:
            return False
        return not lifetime.ended(self._process.pid) and not self._come

    def ask(
        self, data: bytes, seconds: float = math.inf, early: Callable[[dict[str, Any]], None] | None = None
    ) -> dict[str, Any]:
        """Send a request and wait for the reply, at most for ``seconds``, the child's own start included. ``early``
        takes what the child reports before it.

        Raises ``ChildError`` if the child ends meanwhile, is held for long, or answers anything else; ``TooLong`` after
        ``seconds``. It is closed then, and after whatever interrupts the waiting.
        """
        self.busy = True
        self._until = time.monotonic() + seconds
        try:
            if self._number == message.READY:
                self._reply(message.READY, b"", None)
            self._number += 1
            reply = self._reply(self._number, message.framed(self._number, data), early)
            answer: dict[str, Any] = json.loads(reply)
        except (message.Broken, ValueError) as error:
            self.close()
            raise ChildError(f"the child process was ended: {error}") from None
        except BaseException:  # interrupted: the reply would be taken for that of the next request
            self.close()
            raise
        finally:
            self.busy = False
        return answer

    def _reply(self, number: int, sent: bytes, early: Callable[[dict[str, Any]], None] | None) -> bytes:
        """The reply of that number, while ``sent`` goes out."""
        left = memoryview(sent)
        numbers = (number, message.EARLY + number) if early is not None else (number,)
        began = number != message.READY
        show = began and self._show
        looked = time.monotonic()
        with selectors.DefaultSelector() as waiting:
            waiting.register(self._replies, selectors.EVENT_READ)
            for output in self._outputs:
                if output.open:
                    waiting.register(output.fd, selectors.EVENT_READ, output)
            if left:
                waiting.register(self._requests, selectors.EVENT_WRITE)
            while True:
                events = waiting.select(max(0.0, min(BEAT, self._until - time.monotonic())))
                for key, _ in events:
                    if key.fd == self._requests:
                        left = left[self._write(left) :]
                        if not left:
                            waiting.unregister(self._requests)
                    elif key.data is not None:
                        key.data.read(show)
                        if not key.data.open:
                            waiting.unregister(key.fd)
                    elif not self._read():
                        raise self._ending(began)
                while (part := message.taken(self._come, *numbers)) is not None:
                    received, body = part
                    if received == number:
                        self._read_outputs(show)  # what was said before it is in the pipes
                        return body
                    assert early is not None
                    early(json.loads(body))
                now = time.monotonic()
                if now > self._until:
                    raise TooLong("the child process did not answer in time")
                if now - looked > BEAT:
                    looked = now
                    self._look(now, began)

    def _write(self, data: memoryview) -> int:
        try:
            return os.write(self._requests, data[:1048576])
        except BlockingIOError:
            return 0
        except OSError:  # it is gone: the pipe of replies says so
            return len(data)

    def _read(self) -> bool:
        """Take what there is of the reply; whether more may come."""
        try:
            data = os.read(self._replies, 1 << 20)
        except BlockingIOError:
            return True
        self._come += data
        return bool(data)

    def _read_outputs(self, show: bool) -> None:
        for output in self._outputs:
            output.read(show)

    def _look(self, now: float, began: bool) -> None:
        """Raise if the child is no longer at work. A process that it forked may hold its pipes open when it is gone."""
        if os.getpid() != self.owner:
            raise message.Broken("it is the child of another process, which forked this one")
        pid = self._process.pid
        if lifetime.ended(pid):
            raise self._ending(began)
        if not lifetime.stopped(pid):
            self._held_since = None
        elif self._held_since is None:
            self._held_since = now
        elif now - self._held_since > STOPPED:
            raise message.Broken(
                f"it was stopped by a signal, and did not go on within {STOPPED:.0f} seconds"
            )

    def _ending(self, began: bool) -> ChildError:
        self._read_outputs(began and self._show)
        code = lifetime.end(self._process)
        if Child.leaving:
            return ChildError("this program is ending, and so did the child process")
        how = f"by signal {-code}" if code < 0 else f"with code {code}"
        what = "in the middle of its work" if began else "before it began to work"
        last = self._outputs[1].last.strip()
        words = "".join(f"\n  {line}" for line in last.splitlines()[-5:])
        return ChildError(f"the child process ended {how} {what}{words}", code, last, began)

    def end(self) -> None:
        """End the process, and all that it started. Its pipes stay open for whoever waits for a reply."""
        if self.owner == os.getpid():
            lifetime.end(self._process)

    def close(self) -> None:
        """End it, and forget it."""
        self.end()
        self.forget()

    def forget(self) -> None:
        """Close the pipes of this process alone: a process that was forked from the owner has its own."""
        self._process.returncode = self._process.returncode or 0  # nothing is left to wait for
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        for output in self._outputs:
            output.open = False
        for fd in (self._replies, self._life):
            if fd >= 0:
                os.close(fd)
        self._replies = self._life = -1
