"""Progress on stderr: what is being done and for how long, after a second of work; and a bar where it has steps.

And an interrupt (Ctrl-C) that holds, also where Python drops the exception that it raises: one that is raised while
Python runs ``__del__`` or the callback of a weak reference is printed ("Exception ignored in …") and gone; the compiler
runs many of them, and some code swallows whatever is raised.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TextIO

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
    thread = threading.Thread(target=_show_time, args=(what, stream, done, patience), daemon=True)
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


def _show_time(what: str, stream: TextIO, done: threading.Event, patience: float) -> None:
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


@contextmanager
def interrupts() -> Iterator[Callable[[], None]]:
    """Yields ``check()``, to be called between two pieces of work: it raises what an interrupt raised before.

    The handler of SIGINT that is set is still what an interrupt calls, a handler of the user's too: what it raises is
    noted on its way, and where it raises nothing, there is nothing to end for. It is set again afterwards. Outside
    the main thread, and where interrupts are ignored or end the process, nothing is set: ``check()`` does nothing.
    """
    raised: list[BaseException] = []

    def check() -> None:
        if raised:
            raise raised[0].with_traceback(None)

    former = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(former):
        yield check
        return
    call: Callable[[int, FrameType | None], Any] = former

    def noting(number: int, frame: FrameType | None) -> Any:
        try:
            return call(number, frame)
        except BaseException as error:
            raised.append(error)
            raise

    try:
        signal.signal(signal.SIGINT, noting)
        yield check
    finally:
        if signal.getsignal(signal.SIGINT) is noting:  # else the program set one of its own meanwhile
            signal.signal(signal.SIGINT, former)
