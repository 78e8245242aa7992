"""A job: one command of compile_lens in a separate process with limits. It has an outcome however it ends."""

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

POLL_SECONDS = 0.2
"""Seconds between two checks of a job that prints nothing."""

COMMAND_LINE = ".".join((__name__.partition(".")[0], "__main__"))
"""Module of the command line, which the other process runs; it is not imported here."""

MARK = "COMPILE_LENS_JOB"
"""Environment variable that identifies every process of a job, also those that left its session."""

TIME, OUTPUT = "time", "output"

BAD_CALL = (2, 3)
"""Exit codes of a command that was invalid; its stderr is one sentence with the reason (``cli/output.py``)."""


@dataclass(frozen=True)
class Limits:
    """Limits of one job.

    Attributes:
        seconds: wall time.
        memory: private memory of each of its processes, in bytes. Beyond it Linux raises ``MemoryError`` in the
            program; other systems may not.
        output: maximum output in bytes.
    """

    seconds: float = 300.0
    memory: int = 16 << 30
    output: int = 64 << 20


@dataclass(frozen=True)
class Outcome:
    """The end of a job.

    Attributes:
        code: its exit code, negative for a signal; None if a limit ended it.
        limit: ``"time"`` or ``"output"`` if that limit ended it, else ``""``.
        seconds: wall time.
        stdout, stderr: the last 4,000 characters that it printed.
    """

    code: int | None
    limit: str
    seconds: float
    stdout: str
    stderr: str


class Job:
    """One run of a command, such as ``["show", "model.py:f"]``. Another thread may call ``stop``, or set ``cancelled``,
    which ends the job within 0.2 s."""

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
        pipes[0].close()  # type: ignore[union-attr]  # its standard input is empty
        self._readers = [
            OutputReader(name, pipe.fileno()) for name, pipe in zip(("stdout", "stderr"), pipes[1:]) if pipe
        ]

    def wait(self) -> Outcome:
        """Wait until the job and its descendants have ended, and return the outcome."""
        start = time.monotonic()
        limit = ""
        printed = 0
        try:
            with selectors.DefaultSelector() as waiting:
                for reader in self._readers:
                    waiting.register(reader.fd, selectors.EVENT_READ, reader)
                # Wait for the job, not for its pipes, which a process that it forked may keep open.
                while not (lifetime.ended(self._process.pid) or self._cancelled.is_set()):
                    if time.monotonic() - start > self._limits.seconds:
                        limit = TIME
                        break
                    if printed > self._limits.output:
                        limit = OUTPUT
                        break
                    for key, _ in waiting.select(POLL_SECONDS):
                        printed += key.data.read(show=False)
                        if not key.data.open:
                            waiting.unregister(key.fd)
        finally:
            code = self.stop()
        return Outcome(None if limit else code, limit, time.monotonic() - start, *self._last())

    def _last(self) -> tuple[str, str]:
        for reader in self._readers:
            reader.read(show=False)
        stdout, stderr = (reader.last for reader in self._readers)
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        return stdout, stderr

    def stop(self) -> int:
        """End the job and its descendants, and return its exit code."""
        code = lifetime.end(self._process)
        for pid in _marked(self._mark):
            with contextlib.suppress(OSError):
                os.kill(pid, 9)
        if self._life >= 0:
            os.close(self._life)
            self._life = -1
        return code


def _marked(mark: str) -> list[int]:
    """Return the ids of a job's remaining processes, on systems that expose their environment."""
    entry = f"{MARK}={mark}".encode()
    pids = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError, ValueError):
            if entry in environ.read_bytes().split(b"\0"):
                pids.append(int(environ.parent.name))
    return pids
