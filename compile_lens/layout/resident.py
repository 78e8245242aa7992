"""Long-lived Graphviz process for many pages: starting one takes longer than placing the graphs of a page."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

TIMEOUT = 3.0
"""Seconds for a graph; after that the process is ended, and the graph placed without it."""

MAX_GRAPHS = 2000
"""Graphs after which the process is replaced: Graphviz does not free all memory of a graph."""

MAX_CACHED = 500
"""Most cached answers, for graphs that recur unchanged after an edit elsewhere."""


@dataclass(frozen=True)
class Dialect:
    """A program that runs Graphviz: its command, and the form of its input and output.

    Attributes:
        question: function from a DOT text to the program's input.
        end: the end of each of its replies.
        answer: function from a reply to ``plain`` output, ``""`` for an error.
    """

    command: tuple[str, ...]
    question: Callable[[str], bytes]
    end: bytes
    answer: Callable[[bytes], str]


class Resident:
    """A Graphviz process that starts with the first graph and ends with this process.

    Graphs are placed one after another. A failure, for any reason, ends the process and gives no answer; the next graph
    starts another process. If the very first graph fails, no other process is started.
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
                placed[dot] = self._answers[dot] = answer  # moves to the end, as most recently used
        while len(self._answers) > MAX_CACHED:
            del self._answers[next(iter(self._answers))]
        return placed

    def _placed(self, dot: str) -> str:
        if self._works is False:
            return ""
        # An interrupt may have come during an exchange, with the rest of the answer still in the pipe.
        if self._talking or self._count >= MAX_GRAPHS:
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
        """Return the reply to a question, ``b""`` if none came in time. Both fit into a pipe, or the process reads
        before it writes."""
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
        output, deadline = self._process.stdout.fileno(), time.monotonic() + TIMEOUT
        data = b""
        while not data.endswith(self._dialect.end):
            if not select.select([output], [], [], max(0.0, deadline - time.monotonic()))[0]:
                return b""
            part = os.read(output, 1 << 16)
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
        """Close the pipes: the process ends at the end of its input, once no process has the other end open."""
        if self._process is not None:
            for pipe in (self._process.stdin, self._process.stdout):
                assert pipe is not None
                pipe.close()
            self._process = None
        self._talking = False
