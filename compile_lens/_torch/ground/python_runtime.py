"""Python's garbage collector and stack during a compile.

A compile makes many objects that stay until it is over, beside all that torch holds. The collector scans what
is new again and again, and now and then everything, which takes a tenth of a capture. Here it does both a few
times less often: everything seldom, and what is new still so often that it is in the processor's caches (from
3,000 objects on, each takes twice as long). Torch 2.15 delays full collections in each compile, and restores
the process's setting when the last compile is over. If two parties do that in two threads, one restores what
the other has set; so there a capture counts as a compile.

CPython keeps the frames of functions in blocks of 16 KiB. A loop whose calls cross the end of a block asks
the system for the next block at every call, and gives it back at every return. A compile is deep enough to
have several such places, in torch and here, and it is chance which loops meet one: they may cost a tenth of
it. A frame that wants much room gets a larger block, and the rest of the block serves the frames above it.
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
"""New objects after which the collector scans them (Python: 700 or 2,000)."""

OLDEST = 60
"""Scans of the middle generation after which everything is scanned (Python: 10; 0 if it scans everything in
small steps)."""

_lock = threading.RLock()
_compiles: set[object] = set()
_settings: list[tuple[int, ...]] = []
"""The program's thresholds, and those that are set for the compiles running in any of its threads."""


@contextlib.contextmanager
def less_garbage_collection() -> Iterator[None]:
    """For the duration, collect garbage less often; restored once no other thread compiles."""
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
    """Return torch's own context manager for this, if it has one and uses it."""
    hook = hook_points.find("torch._dynamo.utils:deferred_full_gc")
    if hook is None or getattr(torch._dynamo.config, "gc_gen2_threshold_during_compile", None) is None:
        return None
    return cast("Callable[[], contextlib.AbstractContextManager[None]]", getattr(*hook))


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
    """Return ``function`` so that it runs with room on the stack above it."""

    @functools.wraps(function)
    def with_room(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return cast(Function, reserve_stack(with_room))


def reserve_stack(function: Function) -> Function:
    """Return the same function, whose frame leaves room for those above it."""
    # Elsewhere frames have no blocks.
    if sys.version_info >= (3, 11) and sys.implementation.name == "cpython":
        function.__code__ = function.__code__.replace(co_stacksize=SLOTS)
    return function
