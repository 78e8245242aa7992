"""Progress of the command line: after a second of work, stderr says what is being done, and for how long."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
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
    told = threading.Thread(target=_tell, args=(what, stream, done, patience), daemon=True)
    told.start()
    try:
        yield
    finally:
        done.set()
        told.join()  # nothing may be written after the work is over


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
