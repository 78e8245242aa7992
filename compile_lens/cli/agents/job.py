"""A job: one command of compile_lens in a process of its own, with limits. However it ends, there is an outcome."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...child import launcher, lifetime
from ...child.output import OutputReader
from ...errors import ChildError

BEAT = 0.2
"""Seconds between two looks at a job that prints nothing."""

COMMAND_LINE = ".".join((__name__.partition(".")[0], "__main__"))
"""Module of the command line, which another process runs: nothing of it is imported here."""

MARK = "COMPILE_LENS_JOB"
"""Variable that every process of a job has, also those that left its session."""

TIME, OUTPUT = "time", "output"

BAD_CALL = (2, 3)
"""Exit codes of a command that could not run as it was given, which say why in one sentence (``cli/output.py``)."""


@dataclass(frozen=True)
class Limits:
    """Limits of one job.

    Attributes:
        seconds: wall time.
        memory: bytes of private memory of each of its processes. Linux refuses what exceeds them, so that the program
            gets a ``MemoryError``; other systems may not.
        output: bytes that it may print.
    """

    seconds: float = 300.0
    memory: int = 16 << 30
    output: int = 64 << 20


@dataclass(frozen=True)
class Outcome:
    """The end of a job.

    Attributes:
        code: its exit code, below 0 for a signal; ``None`` where it was ended for a limit.
        limit: ``"time"`` or ``"output"`` where it was ended for that limit, else ``""``.
        seconds: how long it ran.
        stdout, stderr: the last 4,000 characters that it printed.
    """

    code: int | None
    limit: str
    seconds: float
    stdout: str
    stderr: str


class Job:
    """One run of a command, such as ``["show", "model.py:f"]``. Another thread may call ``stop``, or set ``cancelled``,
    which ends the job within a fifth of a second."""

    def __init__(
        self,
        words: Sequence[str],
        folder: Path,
        limits: Limits,
        cancelled: threading.Event | None = None,
    ) -> None:
        self._limits = limits
        self._cancelled = cancelled or threading.Event()
        self._mark = os.urandom(12).hex()
        with tempfile.TemporaryFile() as request:
            request.write(json.dumps({"words": list(words), "memory": limits.memory}).encode())
            request.seek(0)
            environment = {**os.environ, MARK: self._mark, "PYTHONIOENCODING": "utf-8:backslashreplace"}
            try:
                self._process, self._life = launcher.start(
                    COMMAND_LINE, environment, (request.fileno(),), str(folder)
                )
            except OSError as error:
                raise ChildError(f"no process could be started with {sys.executable!r}: {error}") from error
        pipes = [self._process.stdin, self._process.stdout, self._process.stderr]
        pipes[0].close()  # type: ignore[union-attr]  # whoever reads from it is at its end
        self._readers = [
            OutputReader(name, pipe.fileno()) for name, pipe in zip(("stdout", "stderr"), pipes[1:]) if pipe
        ]

    def wait(self) -> Outcome:
        """Return the outcome, after the job and all that it started have ended."""
        began = time.monotonic()
        limit = ""
        printed = 0
        try:
            with selectors.DefaultSelector() as waiting:
                for reader in self._readers:
                    waiting.register(reader.fd, selectors.EVENT_READ, reader)
                # A process that the job forked may hold the pipes open: the job's own end is what counts.
                while not (lifetime.ended(self._process.pid) or self._cancelled.is_set()):
                    if time.monotonic() - began > self._limits.seconds:
                        limit = TIME
                        break
                    if printed > self._limits.output:
                        limit = OUTPUT
                        break
                    for key, _ in waiting.select(BEAT):
                        printed += key.data.read(show=False)
                        if not key.data.open:
                            waiting.unregister(key.fd)
        finally:
            code = self.stop()
        return Outcome(None if limit else code, limit, time.monotonic() - began, *self._last())

    def _last(self) -> tuple[str, str]:
        for reader in self._readers:
            reader.read(show=False)
        stdout, stderr = (reader.last for reader in self._readers)
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        return stdout, stderr

    def stop(self) -> int:
        """End the job, with all that it started, and return its exit code."""
        code = lifetime.end(self._process)
        for pid in _marked(self._mark):
            with contextlib.suppress(OSError):
                os.kill(pid, 9)
        if self._life >= 0:
            os.close(self._life)
            self._life = -1
        return code


def _marked(mark: str) -> list[int]:
    """Return the processes of a job that are still there, on systems that show their environment."""
    entry = f"{MARK}={mark}".encode()
    pids = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError, ValueError):
            if entry in environ.read_bytes().split(b"\0"):
                pids.append(int(environ.parent.name))
    return pids
