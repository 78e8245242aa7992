"""Progress on stderr: what is being done and for how long, after a second of work; and a bar where it has steps."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from tqdm import tqdm

PATIENCE = 1.0
"""Seconds of work before anything is said."""


@contextmanager
def progress(what: str, *, quiet: bool = False, patience: float = PATIENCE) -> Iterator[None]:
    """Say on stderr what is being done, if it takes longer than ``patience`` seconds. Never writes to stdout.

    On a terminal the line counts the seconds and goes away at the end; in a log it is one line at the start
    and one at the end. ``quiet`` says nothing.
    """
    stream = sys.stderr
    if quiet or stream is None:
        yield
        return
    done = threading.Event()
    thread = threading.Thread(target=_tell, args=(what, stream, done, patience), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()  # nothing may be written after the work is over


@contextmanager
def bar(what: str, *, quiet: bool = False) -> Iterator[Callable[[str, int, int], None]]:
    """A progress bar on stderr, plain ``tqdm`` (the notebook's own needs widgets). It goes away at the end.

    Yields ``tell(part, done, total)``. Nothing runs beside the work: the bar moves only when it is told.
    """
    if quiet or sys.stderr is None:
        yield lambda part, done, total: None
        return
    with _Quiet(desc=what, file=sys.stderr, leave=False, unit="round") as shown:

        def tell(part: str, done: int, total: int) -> None:
            shown.set_description(f"{what} {part}", refresh=False)
            if shown.total != total or done < shown.n:
                shown.reset(total)
            shown.update(done - shown.n)

        yield tell


class _Quiet(tqdm):  # type: ignore[misc]  # tqdm is not typed here
    monitor_interval = 0  # tqdm's own starts a thread that stays


def watched() -> bool:
    """Return True if somebody watches stderr: it is a terminal, or the program is a notebook's kernel."""
    if sys.stderr is not None and sys.stderr.isatty():
        return True
    shell = sys.modules.get("IPython")
    return shell is not None and getattr(shell.get_ipython(), "kernel", None) is not None


def _tell(what: str, stream: TextIO, done: threading.Event, patience: float) -> None:
    begin = time.monotonic()
    if done.wait(patience):
        return
    encoding = getattr(stream, "encoding", None) or "ascii"
    text = what.encode(encoding, "backslashreplace").decode(encoding)
    if not stream.isatty():
        print(f"compile-lens: {text} ...", file=stream, flush=True)
        done.wait()
        print(f"compile-lens: {text}: {time.monotonic() - begin:.1f} s", file=stream, flush=True)
        return
    with tqdm(desc=text, bar_format="{desc} ... {elapsed}", file=stream, leave=False) as bar:
        bar.start_t -= time.monotonic() - begin  # count from the beginning of the work, not of the line
        while not done.wait(0.5):
            bar.refresh()
