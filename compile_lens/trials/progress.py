"""Progress on stderr: a line with the elapsed time after one second of work, or a bar for work in steps.

Also an interrupt (Ctrl-C) that is not lost. Python drops an exception raised in ``__del__`` or in a weak reference's
callback ("Exception ignored in …"), of which the compiler runs many, and some code swallows all exceptions.
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

QUIET_SECONDS = 1.0
"""Seconds of work before anything is printed."""


@contextmanager
def progress(what: str, *, quiet: bool = False, patience: float = QUIET_SECONDS) -> Iterator[None]:
    """Print ``what`` is being done on stderr if it takes longer than ``patience`` seconds.

    On a terminal the line counts seconds and is removed at the end; in a log there is one line at the start and one at
    the end. With ``quiet`` nothing is printed.
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
        thread.join()  # nothing may be written after the work


@contextmanager
def bar(what: str, *, quiet: bool = False) -> Iterator[Callable[[str, int, int], None]]:
    """Show a progress bar on stderr, by plain ``tqdm`` (the notebook's needs widgets), and remove it at the end.

    Yields ``tell(part, done, total)``. There is no thread: the bar moves only on this call.
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
    monitor_interval = 0  # tqdm's default starts a permanent thread


def watched() -> bool:
    """Return True if stderr is a terminal, or the program is a notebook's kernel."""
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
        bar.start_t -= time.monotonic() - begin  # count from the start of the work, not of the line
        while not done.wait(0.5):
            bar.refresh()


@contextmanager
def interrupts() -> Iterator[Callable[[], None]]:
    """Yield ``check()``, to be called between two pieces of work: it raises again what an interrupt raised before.

    An interrupt still calls the current SIGINT handler, the user's own too; an exception that it raises is recorded.
    The handler is restored afterwards. Outside the main thread, and if interrupts are ignored or end the process, no
    handler is set and ``check()`` does nothing.
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
        if signal.getsignal(signal.SIGINT) is noting:  # otherwise the program has set its own
            signal.signal(signal.SIGINT, former)
