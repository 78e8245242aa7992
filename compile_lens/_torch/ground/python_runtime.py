"""Python's garbage collector during a compile: it looks for garbage less often.

A compile makes much that stays until it is over, beside all that torch holds. The collector looks through what is new
again and again, and now and then through everything there is, which takes a tenth of a capture. Here it does both a few
times less often: everything is looked through seldom, and what is new still so often that it is in the processor's
caches (from 3,000 objects on, each of them takes twice as long).

Torch 2.15 looks for old garbage later in each compile, and puts back what the process had when the last one is over.
Of two who do that, in two threads, one would put back what the other had set; so there a capture counts as a compile.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

import torch
import torch._dynamo

from . import hook_points
from .undo import Undo

YOUNG = 1_500
"""Objects that are made, and not let go, before the collector looks for garbage among them (Python: 700 or 2,000)."""

OLDEST = 60
"""Times that it looks through those that were left before it looks through everything (Python: 10; 0 where it goes
through everything in small steps)."""

_lock = threading.RLock()
_compiles: set[object] = set()
_settings: list[tuple[int, ...]] = []
"""What the program has set, and what is set for the compiles that are running in any of its threads."""


@contextlib.contextmanager
def less_garbage_collection() -> Iterator[None]:
    """For the duration, garbage is looked for less often; then as before, once no other thread compiles."""
    torchs = _torchs_own()
    if torchs is not None:
        with torchs():
            gc.set_threshold(*_quieter(gc.get_threshold()))
            yield
        return
    compile = object()
    with Undo() as undo, undo:
        undo.add(_leave, compile)
        with _lock:
            _compiles.add(compile)
            if not _settings:
                _raise()
        yield


def _torchs_own() -> Callable[[], contextlib.AbstractContextManager[None]] | None:
    """Torch's own, where it has one and uses it."""
    found = hook_points.find("torch._dynamo.utils:deferred_full_gc")
    if found is None or getattr(torch._dynamo.config, "gc_gen2_threshold_during_compile", None) is None:
        return None
    return cast("Callable[[], contextlib.AbstractContextManager[None]]", getattr(*found))


def _leave(compile: object) -> None:
    with _lock:
        _compiles.discard(compile)
        if not _compiles:
            _put_back()


def _raise() -> None:
    own = gc.get_threshold()
    if (quieter := _quieter(own)) != own:
        _settings[:] = own, quieter  # before it is set: an interrupt in between is put back as well
        gc.set_threshold(*quieter)
        _settings[1:] = [gc.get_threshold()]  # as this Python keeps it


def _quieter(own: tuple[int, int, int]) -> tuple[int, int, int]:
    young, older, oldest = own
    if young == 0:  # never
        return own
    return max(young, YOUNG), older, max(oldest, OLDEST) if oldest else 0


def _put_back() -> None:
    # What the program has set meanwhile stays.
    if _settings and gc.get_threshold() == _settings[-1]:
        gc.set_threshold(*_settings[0])
    _settings.clear()


Function = TypeVar("Function", bound=Callable[..., Any])

SLOTS = 1 << 16
"""Values that the frame says it needs. It never uses them: the system gives memory to what is written to.

A block is the smallest power of two that holds them with what each frame has besides, so nearly half of it,
512 KiB, is left for others: about a thousand frames of usual size.
"""


def with_stack_room(function: Function) -> Function:
    """``function``, called on a stack with room above it."""

    @functools.wraps(function)
    def with_room(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return cast(Function, reserve_stack(with_room))


def reserve_stack(function: Function) -> Function:
    """The same function, whose frame leaves room for those above it."""
    # Elsewhere frames have no blocks.
    if sys.version_info >= (3, 11) and sys.implementation.name == "cpython":
        function.__code__ = function.__code__.replace(co_stacksize=SLOTS)
    return function
