"""``compile-lens run --what-if``: run the program in child processes, unchanged and with each setting that may help."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import pickle
import re
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..child.imports import CallerFinder
from ..errors import LensError, UsageError
from .output import say
from .run import Run, find_program, without_compile

if TYPE_CHECKING:
    from ..record.program import ProgramRecord
    from ..record.remedies import Remedy
    from ..trials.remedies import Attempt

RESULT = "output and exit code"
_MAX_INTERRUPTS = 2
"""Number of interrupts that ends the program; earlier ones are passed to it."""


class RemedyRuns(Run):
    """The runs of a program with and without remedies, and their report. The exit code is that of the run without a
    remedy.

    Args:
        words: the program with its arguments, as on the command line.
        time_limit: time limit in seconds of a run with a remedy; None to derive it from the run without one.
        quiet: True to announce no runs on stderr.
    """

    def __init__(
        self,
        words: list[str],
        out: list[Path],
        cuda_graphs: str | None = None,
        json: bool = False,
        full: bool = False,
        time_limit: float | None = None,
        quiet: bool = False,
    ) -> None:
        if int(os.environ.get("WORLD_SIZE") or 1) > 1:
            raise UsageError("--what-if reruns programs of one process, and this process is one of several")
        super().__init__(find_program(words), out, None, json, full)
        self._journal = None  # each child keeps its own
        self._words = words
        self._gpu = cuda_graphs
        self._time_limit = time_limit
        self._quiet = quiet
        self._tried: ProgramRecord | None = None

    def __call__(self) -> None:
        self.set_up()
        with tempfile.TemporaryDirectory(prefix="compile-lens-") as folder:
            self._folder = folder
            base = self._launch((), math.inf)
            self._tried = self._with_remedies(base)
        self._write()
        code = base.outcome[0]
        raise SystemExit(code if code >= 0 else 128 - code)

    def _with_remedies(self, base: Attempt) -> ProgramRecord:
        from ..measures.remedies import remedies
        from ..record.missing import Missing
        from ..record.remedies import ProgramRemedies
        from ..trials.remedies import tried

        record = base.record
        if record is None:
            return dataclasses.replace(without_compile(self._program), ended=base.failure)
        result = ProgramRemedies(count=1, result=RESULT)
        if remedies(record):
            try:
                result = tried(record, base, self._launch, compare, RESULT, self._time_limit, self._report)
            except KeyboardInterrupt:
                result = dataclasses.replace(result, missing=Missing("remedies", "it was interrupted"))
        return dataclasses.replace(record, remedies=result)

    def _record(self) -> ProgramRecord:
        assert self._tried is not None
        return self._tried

    def _report(self, what: str, number: int, total: int) -> None:
        if not self._quiet:
            say(f"compile-lens: run {number} of at most {total}: {what or 'as it is'}", sys.stderr)

    def _launch(self, settings: tuple[Remedy, ...], seconds: float) -> Attempt:
        """Run the program in a new process; the output of the first run is shown."""
        from ..child import launcher, lifetime
        from ..results.program import Program
        from ..trials.remedies import Attempt

        show = not os.listdir(self._folder)
        path = Path(self._folder, f"{len(os.listdir(self._folder))}.json")
        start = time.monotonic()
        with tempfile.TemporaryFile() as job:
            pickle.dump((self._words, str(path), self._gpu if show else None, settings, sys.path), job)
            job.seek(0)
            process, life = launcher.start("compile_lens.cli.remedies", os.environ, (job.fileno(),))
        try:
            output, late = _output(process, show, start + seconds, self._document is not None)
            if late:
                failure = f"it ran past its time limit of {seconds:.0f} s and was ended"
                return Attempt(None, time.monotonic() - start, (1, ""), failure)
            code = process.wait()
        finally:
            lifetime.end(process)
            os.close(life)
        seconds_used = time.monotonic() - start
        left = path.with_name(f"{path.name}.part")
        try:
            record = Program.load(path if path.exists() else left).record
        except LensError:
            failure = f"it ended with exit code {code} and left no record"
            return Attempt(None, seconds_used, (code, output), failure)
        return Attempt(record, seconds_used, (code, output))


def _output(process: subprocess.Popen[bytes], show: bool, until: float, to_stderr: bool) -> tuple[str, bool]:
    """Return the standard output of a process and False; or ``""`` and True if it runs past ``until``. Its input is
    empty."""
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    process.stdin.close()
    shown = {process.stdout: sys.stderr if to_stderr else sys.stdout, process.stderr: sys.stderr}
    parts: list[bytes] = []
    interrupts = 0
    with selectors.DefaultSelector() as waiting:
        for pipe in shown:
            waiting.register(pipe, selectors.EVENT_READ)
        while waiting.get_map():
            try:
                events = waiting.select(max(0.0, min(1.0, until - time.monotonic())))
                for key, _ in events:
                    one: Any = key.fileobj
                    data = os.read(key.fd, 1 << 16)
                    if not data:
                        waiting.unregister(one)
                    if one is process.stdout:
                        parts.append(data)
                    if show and data:
                        _show(shown[one], data)
            except KeyboardInterrupt:
                interrupts += 1
                if not show or interrupts >= _MAX_INTERRUPTS:
                    raise
                process.send_signal(signal.SIGINT)
            if time.monotonic() > until:
                return "", True
            if not events and process.poll() is not None:  # a process that it forked keeps the pipes open
                break
    return b"".join(parts).decode("utf-8", "replace"), False


def _show(stream: Any, data: bytes) -> None:
    if stream is None:
        return
    with contextlib.suppress(OSError, ValueError):  # nobody reads it
        if hasattr(stream, "buffer"):
            stream.flush()
            stream.buffer.write(data)
        else:
            stream.write(data.decode("utf-8", "replace"))
        stream.flush()


def main(job: int) -> None:
    """Run the program once, as the main function of a child process."""
    with os.fdopen(job, "rb") as file:
        words, path, cuda_graphs, settings, sys.path[:] = pickle.load(file)
    sys.meta_path.remove(CallerFinder)  # the program imports as under plain Python
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    Run(find_program(words), [Path(path)], cuda_graphs, settings=settings)()


# Comparing what two runs print -------------------------------------------------------------------------------

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
RELATIVE_TOLERANCE, ABSOLUTE_TOLERANCE = 1e-4, 1e-6
"""Tolerances for printed numbers with a fraction, since other kernels sum in another order."""


def compare(base: Attempt, one: Attempt, again: Attempt | None) -> tuple[bool | None, str]:
    """Compare the exit codes and the output of two runs, without the lines that differ between two runs without a
    remedy (``base``, ``again``)."""
    (code, text), (its_code, its_text) = base.outcome, one.outcome
    if code != its_code:
        ended = one.record.ended if one.record is not None else ""
        return False, f"exit code {its_code}, not {code}{f': {ended}' if ended else ''}"[:240]
    lines, its_lines = text.splitlines(), its_text.splitlines()
    left_out: set[int] = set()
    if again is not None:
        same_code, other = again.outcome
        others = other.splitlines()
        if same_code != code or len(others) != len(lines):
            return None, "not compared: two runs without a change differ as well"
        left_out = {at for at, pair in enumerate(zip(lines, others, strict=True)) if _distance(*pair) is None}
        if lines and len(left_out) == len(lines):
            return None, "not compared: each line differs between two runs without a change"
    if len(lines) != len(its_lines):
        return False, f"it prints {len(its_lines)} lines, not {len(lines)}"
    worst = 0.0
    for at, (line, its) in enumerate(zip(lines, its_lines, strict=True)):
        if at in left_out:
            continue
        distance = _distance(line, its)
        if distance is None:
            return False, f"line {at + 1} of its output is {its.strip()[:60]!r}, not {line.strip()[:60]!r}"
        worst = max(worst, distance)
    words = "the same output and exit code"
    if not lines:
        words = "the same exit code; it prints nothing"
    elif worst:
        words += f", numbers within {worst:.1g} of each other"
    if left_out:
        words += f" in {len(lines) - len(left_out)} of {len(lines)} lines: the others differ by themselves"
    return True, words


def _distance(line: str, other: str) -> float | None:
    """Return the largest relative difference between the numbers of two lines; None if they differ in more than
    that."""
    if line == other:
        return 0.0
    if _NUMBER.sub("#", line) != _NUMBER.sub("#", other):
        return None
    worst = 0.0
    for one, its in zip(_NUMBER.findall(line), _NUMBER.findall(other), strict=True):
        if one == its:
            continue
        a, b = float(one), float(its)
        size = max(abs(a), abs(b))
        if one.lstrip("+-").isdigit() and its.lstrip("+-").isdigit():
            return None
        if abs(a - b) > max(RELATIVE_TOLERANCE * size, ABSOLUTE_TOLERANCE):
            return None
        worst = max(worst, abs(a - b) / size if size else 0.0)
    return worst
