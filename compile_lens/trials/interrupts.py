"""An interrupt (Ctrl-C) that holds, also where Python drops the exception that it raises.

A ``KeyboardInterrupt`` that is raised while Python runs ``__del__`` or the callback of a weak reference is printed
("Exception ignored in …") and gone; the compiler runs many of them, and some code swallows whatever is raised.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


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
