"""The caller's side of one child process: start it, send requests, read replies, end it."""

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

POLL_SECONDS = 0.5
"""Seconds between two checks that a silent child still runs."""

STOPPED_SECONDS = 20.0
"""Seconds that a child may be stopped by a signal before it is ended."""


Start = Callable[
    [str, Mapping[str, str], Sequence[int], str | None],
    tuple[subprocess.Popen[bytes] | ForkedProcess, int],
]
"""Function that starts a process: ``launcher.start`` a new one, ``fork.start`` a fork of this one."""


class TooLong(ChildError):
    """The child process did not answer within the caller's time limit and was ended."""


class Child:
    """One process that answers requests, one at a time, until it is closed.

    Args:
        module: name of the module whose ``main`` answers requests, with ``serve`` of ``worker.py``.
        environment: all environment variables of the process.
        folder: its working directory; None for the caller's.
        show: True to print here what the child prints during a request. Its last output is kept either way.
        start: function that starts the process.
    """

    leaving = False
    """True while this program exits and ends all its children."""

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
        self.module_times: dict[str, int] = {}
        self.registered: frozenset[str] = frozenset()
        self.busy = False
        self._number = message.READY
        self._received = bytearray()
        self._stopped_since: float | None = None
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
        """The process id; the process leads its own session."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """True if it can take a request."""
        if self.owner != os.getpid() or self._process.returncode is not None:
            return False
        return not lifetime.ended(self._process.pid) and not self._received

    def ask(
        self, data: bytes, seconds: float = math.inf, early: Callable[[dict[str, Any]], None] | None = None
    ) -> dict[str, Any]:
        """Send a request and return the reply. ``early`` is called with each report that the child sends before the
        reply.

        Raises ``ChildError`` if the child ends, stays stopped, or breaks the protocol; ``TooLong`` if it takes more
        than ``seconds``, its start included. The child is then closed, as after any other interruption.
        """
        self.busy = True
        self._until = time.monotonic() + seconds
        try:
            if self._number == message.READY:
                self._reply(message.READY, b"", None)
            self._number += 1
            reply = self._reply(self._number, message.framed(self._number, data), early)
            answer: dict[str, Any] = json.loads(reply)
        except (message.ProtocolError, ValueError) as error:
            self.close()
            raise ChildError(f"the child process was ended: {error}") from None
        except BaseException:  # interrupted: the next request would receive this reply
            self.close()
            raise
        finally:
            self.busy = False
        return answer

    def _reply(self, number: int, sent: bytes, early: Callable[[dict[str, Any]], None] | None) -> bytes:
        """Send ``sent`` and return the reply with this number."""
        left = memoryview(sent)
        numbers = (number, message.EARLY + number) if early is not None else (number,)
        working = number != message.READY
        show = working and self._show
        checked = time.monotonic()
        with selectors.DefaultSelector() as waiting:
            waiting.register(self._replies, selectors.EVENT_READ)
            for output in self._outputs:
                if output.open:
                    waiting.register(output.fd, selectors.EVENT_READ, output)
            if left:
                waiting.register(self._requests, selectors.EVENT_WRITE)
            while True:
                events = waiting.select(max(0.0, min(POLL_SECONDS, self._until - time.monotonic())))
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
                        raise self._exit_error(working)
                while (part := message.next_message(self._received, *numbers)) is not None:
                    received, body = part
                    if received == number:
                        self._read_outputs(show)  # what was printed before the reply
                        return body
                    assert early is not None
                    early(json.loads(body))
                now = time.monotonic()
                if now > self._until:
                    raise TooLong("the child process did not answer in time")
                if now - checked > POLL_SECONDS:
                    checked = now
                    self._check_running(now, working)

    def _write(self, data: memoryview) -> int:
        try:
            return os.write(self._requests, data[:1048576])
        except BlockingIOError:
            return 0
        except OSError:  # the child is gone, which reading the replies reports
            return len(data)

    def _read(self) -> bool:
        """Read the available part of the reply. Return False at its end of file."""
        try:
            data = os.read(self._replies, 1 << 20)
        except BlockingIOError:
            return True
        self._received += data
        return bool(data)

    def _read_outputs(self, show: bool) -> None:
        for output in self._outputs:
            output.read(show)

    def _check_running(self, now: float, working: bool) -> None:
        """Raise if the child has ended or stays stopped. Its pipes do not tell: a process that it forked may keep them
        open."""
        if os.getpid() != self.owner:
            raise message.ProtocolError("it is the child of another process, which forked this one")
        pid = self._process.pid
        if lifetime.ended(pid):
            raise self._exit_error(working)
        if not lifetime.stopped(pid):
            self._stopped_since = None
        elif self._stopped_since is None:
            self._stopped_since = now
        elif now - self._stopped_since > STOPPED_SECONDS:
            raise message.ProtocolError(
                f"it was stopped by a signal, and did not continue within {STOPPED_SECONDS:.0f} seconds"
            )

    def _exit_error(self, working: bool) -> ChildError:
        self._read_outputs(working and self._show)
        code = lifetime.end(self._process)
        if Child.leaving:
            return ChildError("this program is ending, and so did the child process")
        how = f"by signal {-code}" if code < 0 else f"with code {code}"
        what = "in the middle of its work" if working else "before it began to work"
        last = self._outputs[1].last.strip()
        words = "".join(f"\n  {line}" for line in last.splitlines()[-5:])
        return ChildError(f"the child process ended {how} {what}{words}", code, last, working)

    def end(self) -> None:
        """End the process and its descendants. The pipes stay open for a thread that waits for a reply."""
        if self.owner == os.getpid():
            lifetime.end(self._process)

    def close(self) -> None:
        """End the process and close the pipes."""
        self.end()
        self.forget()

    def forget(self) -> None:
        """Close this process's pipes only; the owner keeps its copies if this process was forked from it."""
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
