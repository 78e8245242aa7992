"""Graphviz in child processes: DOT text in, ``plain`` text out, each within a time limit."""

from __future__ import annotations

import importlib.util
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

from compile_lens.errors import LayoutError

from .resident import TIMEOUT, Dialect, Resident

CHILD = Path(__file__).with_name("child.py")
"""The program that runs the Graphviz inside the pygraphviz wheel."""

INSTALL = (
    "pip install 'pygraphviz>=2' (its wheel brings Graphviz along), or install Graphviz itself so that "
    "`dot` is on PATH (apt install graphviz, brew install graphviz, winget install graphviz)"
)


MAX_SHARED = 16_000
"""Longest DOT text, in characters, of graphs that share a process of the system's ``dot``: starting one takes longer
than placing a hundred of them."""


class TimeLimit(LayoutError):
    """Error if Graphviz did not finish within the time limit and was ended."""


Answer = str | LayoutError
"""Graphviz' ``plain`` output for one graph, or the error."""


_resident: Resident | None = None


def keep_process() -> None:
    """Keep one Graphviz process for all small graphs of this process, for many pages in a row. It ends with this
    process. Does nothing on Windows, which cannot wait for the output of a running process."""
    global _resident
    program = shutil.which("dot")
    if os.name != "posix" or _resident is not None or not (program or embedded_folder()):
        return
    if program:
        _resident = Resident(Dialect((program, "-Tplain"), str.encode, b"\nstop\n", bytes.decode))
    else:
        _resident = Resident(Dialect(_embedded_command(TIMEOUT), _question, b"\n", _plain))


def run(dots: Sequence[str], timeout: float) -> list[Answer]:
    """Place each DOT text; return one answer for each, in order.

    ``timeout`` is in seconds for each graph. A kept process (``keep_process``) is tried first, then the system's
    ``dot``, then the Graphviz inside the pygraphviz wheel for graphs that failed for any reason but time.

    Raises:
        LayoutError: if there is no Graphviz; the message says what to install.
    """
    if _resident is not None:
        known = _resident.place([dot for dot in dots if len(dot) <= MAX_SHARED])
        others = [dot for dot in dots if dot not in known]
        rest = iter(_run(others, timeout) if others else [])
        return [known[dot] if dot in known else next(rest) for dot in dots]
    return _run(dots, timeout)


def _run(dots: Sequence[str], timeout: float) -> list[Answer]:
    engines: list[Callable[[Sequence[str], float], list[Answer]]] = []
    if shutil.which("dot"):
        engines.append(_run_system)
    if embedded_folder() and sys.executable:
        engines.append(_run_embedded)
    if not engines:
        raise LayoutError(f"no Graphviz was found to place the graph with; {INSTALL}")
    answers: list[Answer] = list(engines[0](dots, timeout))
    for engine in engines[1:]:
        retries = [
            i for i, a in enumerate(answers) if isinstance(a, LayoutError) and not isinstance(a, TimeLimit)
        ]
        if retries:
            for i, answer in zip(retries, engine([dots[i] for i in retries], timeout), strict=True):
                answers[i] = answer
    return answers


def embedded_folder() -> str | None:
    """Return the folder to import pygraphviz from, or ``None`` without it; do not import it."""
    try:
        spec = importlib.util.find_spec("pygraphviz")
    except ValueError:  # a module without a spec in sys.modules
        return None
    if spec is None or not spec.origin:
        return None
    return str(Path(spec.origin).parent.parent)


def _time_limit(timeout: float) -> TimeLimit:
    return TimeLimit(
        f"Graphviz did not place the graph within {timeout:g} s and was ended; "
        "give a longer timeout, or a smaller limit to draw fewer boxes"
    )


def _run_system(dots: Sequence[str], timeout: float) -> list[Answer]:
    """Place small graphs in one process, and each large or unanswered one in a process of its own."""
    program = shutil.which("dot") or "dot"
    known = _run_shared(program, [dot for dot in dots if len(dot) <= MAX_SHARED], timeout)
    return [known[dot] if dot in known else _run_single(program, dot, timeout) for dot in dots]


def _run_shared(program: str, dots: Sequence[str], timeout: float) -> dict[str, str]:
    """Return the answers for ``dots`` from one process; none if not all were answered in time."""
    if len(dots) < 2:
        return {}
    try:
        done = _ask(program, "".join(dots), timeout)
    except (subprocess.TimeoutExpired, OSError):  # placed one by one, the faulty graph reports its own error
        return {}
    answers = re.findall(r"^graph .*?^stop$\n", done.stdout, re.MULTILINE | re.DOTALL)
    return dict(zip(dots, answers, strict=True)) if not done.returncode and len(answers) == len(dots) else {}


def _run_single(program: str, dot: str, timeout: float) -> Answer:
    try:
        done = _ask(program, dot, timeout)
    except subprocess.TimeoutExpired:
        return _time_limit(timeout)
    except OSError as error:
        return LayoutError(f"{program} could not be started: {error}")
    if done.returncode == 0 and done.stdout.startswith("graph "):
        return done.stdout
    reason = done.stderr.strip() or f"exit status {done.returncode}"
    return LayoutError(f"{program} could not place the graph: {reason}")


def _ask(program: str, dots: str, timeout: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program, "-Tplain"],
        input=dots,
        capture_output=True,
        timeout=timeout,
        check=False,
        encoding="utf-8",
        errors="replace",
    )


def _run_embedded(dots: Sequence[str], timeout: float) -> list[Answer]:
    """Place all graphs in one child; restart it after a graph that timed out or crashed it."""
    answers: list[Answer] = []
    while len(answers) < len(dots):
        answers += _one_child(dots[len(answers) :], timeout)
    return answers


def _one_child(dots: Sequence[str], timeout: float) -> list[Answer]:
    """Return answers for as many of ``dots`` as one child completes, at least one."""
    answers: list[Answer] = []
    command = _embedded_command(timeout)
    with tempfile.TemporaryFile() as errors:
        try:
            child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
        except OSError as error:
            return [LayoutError(f"{sys.executable} could not be started to place the graph: {error}")]
        assert child.stdin is not None and child.stdout is not None
        replies: queue.Queue[bytes] = queue.Queue()
        # A thread serves both pipes: a child that hangs before it reads must not block the caller.
        talk = threading.Thread(
            target=_exchange, args=(child.stdin, child.stdout, list(dots), replies), daemon=True
        )
        talk.start()
        try:
            for _ in dots:
                try:
                    reply = replies.get(timeout=timeout)
                except queue.Empty:
                    answers.append(_time_limit(timeout))
                    break
                if not reply.endswith(b"\n"):
                    _await_end(child)
                    errors.seek(0)
                    last_lines = errors.read().decode("utf-8", "replace").strip().splitlines()[-1:]
                    why = ": ".join([f"exit status {child.returncode}", *last_lines])
                    answers.append(LayoutError(f"Graphviz ended while it placed the graph ({why})"))
                    break
                answers.append(_answer(reply))
        finally:
            child.kill()
            child.wait()
            talk.join()
            child.stdout.close()
    return answers


def _embedded_command(timeout: float) -> tuple[str, ...]:
    # -I and -S keep the user's environment and site hooks (which may import torch) out of the child.
    return (sys.executable, "-I", "-S", str(CHILD), embedded_folder() or "", str(timeout))


def _question(dot: str) -> bytes:
    return json.dumps(dot).encode() + b"\n"


def _await_end(child: subprocess.Popen[bytes]) -> None:
    try:
        child.wait(timeout=5)
    except subprocess.TimeoutExpired:  # it closed its output but is still running
        child.kill()
        child.wait()


def _exchange(to: IO[bytes], back: IO[bytes], dots: list[str], replies: queue.Queue[bytes]) -> None:
    try:
        for dot in dots:
            to.write(_question(dot))
            to.flush()
            line = back.readline()
            replies.put(line)
            if not line.endswith(b"\n"):
                return
    except OSError:  # the child has ended, which an empty reply signals
        replies.put(b"")
    finally:
        try:
            to.close()
        except OSError:  # closing flushes what a dead child will never read
            pass


def _plain(reply: bytes) -> str:
    """Return the ``plain`` output in a reply of the embedded child, ``""`` if there is none."""
    answer = _answer(reply) if reply else ""
    return answer if isinstance(answer, str) else ""


def _answer(reply: bytes) -> Answer:
    answer = json.loads(reply)
    if "plain" in answer:
        return str(answer["plain"])
    return LayoutError(f"Graphviz could not place the graph: {answer['error']}")
