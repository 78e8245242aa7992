"""A process of Graphviz that stays for many pages: to start one takes longer than to place the graphs of a page."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

PATIENCE = 3.0
"""Seconds in which it must place a graph; then it is ended, and the graph placed without it."""

MOST = 2000
"""Graphs after which another process takes its place: Graphviz does not free all that it uses for one."""

REMEMBERED = 500
"""Answers that are remembered, of graphs that come again unchanged after an edit elsewhere."""


@dataclass(frozen=True)
class Dialect:
    """A program that runs Graphviz: its command, and the form of its questions and answers.

    Attributes:
        question: makes a DOT text into what the program reads.
        end: the end of each of its answers.
        answer: makes an answer into ``plain`` output, ``""`` where it is an error.
    """

    command: tuple[str, ...]
    question: Callable[[str], bytes]
    end: bytes
    answer: Callable[[bytes], str]


class Resident:
    """The process. It starts with the first graph, and ends with this one.

    Graphs are placed one after another. One that fails, for whatever reason, ends the process and is not answered;
    the next one starts another. If the first graph of all fails, no other process is started.
    """

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._process: subprocess.Popen[bytes] | None = None
        self._count = 0
        self._works: bool | None = None
        self._talking = False
        self._answers: dict[str, str] = {}
        os.register_at_fork(after_in_child=self._close_pipes)

    def place(self, dots: Sequence[str]) -> dict[str, str]:
        """Return Graphviz' ``plain`` output for each DOT text that could be placed."""
        placed = {}
        for dot in dots:
            answer = self._answers.pop(dot, "") or self._placed(dot)
            if answer:
                placed[dot] = self._answers[dot] = answer  # last in the order: used last
        while len(self._answers) > REMEMBERED:
            del self._answers[next(iter(self._answers))]
        return placed

    def _placed(self, dot: str) -> str:
        if self._works is False:
            return ""
        # An interrupt may have come while it talked, and the rest of the answer is still in the pipe.
        if self._talking or self._count >= MOST:
            self.close()
        self._talking = True
        answer = ""
        with contextlib.suppress(OSError):  # it could not be started, or has ended
            answer = self._dialect.answer(self._exchange(self._dialect.question(dot)))
        if not answer:
            self.close()
        if self._works is None:
            self._works = bool(answer)
        self._talking = False
        return answer

    def _exchange(self, question: bytes) -> bytes:
        """Return the answer to a question, ``b""`` if none came in time. Both are smaller than a pipe, or the process
        reads before it writes."""
        if self._process is None:
            self._count = 0
            self._process = subprocess.Popen(
                self._dialect.command,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        self._count += 1
        assert self._process.stdin is not None and self._process.stdout is not None
        left = memoryview(question)
        while left:
            left = left[os.write(self._process.stdin.fileno(), left) :]
        back, late = self._process.stdout.fileno(), time.monotonic() + PATIENCE
        data = b""
        while not data.endswith(self._dialect.end):
            if not select.select([back], [], [], max(0.0, late - time.monotonic()))[0]:
                return b""
            part = os.read(back, 1 << 16)
            if not part:
                return b""
            data += part
        return data

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._close_pipes()

    def _close_pipes(self) -> None:
        """Let go of the process: it ends at the end of its input, once no process holds the other end."""
        if self._process is not None:
            for pipe in (self._process.stdin, self._process.stdout):
                assert pipe is not None
                pipe.close()
            self._process = None
        self._talking = False
