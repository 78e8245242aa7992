"""Python's garbage collector during a compile: it looks for garbage less often.

A compile makes much that stays until it is over, beside all that torch holds. The collector looks through it again
and again, and now and then through everything there is, which takes a tenth of a capture. Here it looks a few times
less often, and still so often that little garbage waits and that what it looks at is in the processor's caches.
"""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Iterator

from .undo import Undo

YOUNG = 5_000
"""Objects that are made, and not let go, before the collector looks for garbage among them (Python: 700 or 2,000)."""

OLDER = 20
"""Times that it does so before it looks at those that were left (Python: 10)."""

_lock = threading.RLock()
_compiles: set[object] = set()
_settings: list[tuple[int, ...]] = []
"""What the program has set, and what is set for the compiles that are running in any of its threads."""


@contextlib.contextmanager
def later() -> Iterator[None]:
    """For the duration, garbage is looked for less often; then as before, once no other thread compiles."""
    compile = object()
    with Undo() as undo, undo:
        undo.add(_leave, compile)
        with _lock:
            _compiles.add(compile)
            if not _settings:
                _raise()
        yield


def _leave(compile: object) -> None:
    with _lock:
        _compiles.discard(compile)
        if not _compiles:
            _put_back()


def _raise() -> None:
    young, older, oldest = own = gc.get_threshold()
    if 0 < young < YOUNG:  # 0 is never
        _settings[:] = own, (YOUNG, max(older, OLDER), oldest)
        gc.set_threshold(*_settings[-1])
        _settings[1:] = [gc.get_threshold()]  # as this Python keeps it


def _put_back() -> None:
    # What the program has set meanwhile stays.
    if _settings and gc.get_threshold() == _settings[-1]:
        gc.set_threshold(*_settings[0])
    _settings.clear()
