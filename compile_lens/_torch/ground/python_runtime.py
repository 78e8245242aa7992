"""Python's garbage collector and stack during a compile.

A compile creates many objects that live until its end, in addition to all of torch's. The collector often scans the new
objects and sometimes all, which takes a tenth of a capture. Here it does both less often: full scans become rare, and
new objects are still scanned while they are in the processor's caches (from 3,000 objects on, each takes twice as
long). Torch 2.15 itself delays full collections during a compile and restores the process's setting after the last one.
If both changed the setting from two threads, one would restore the other's value; so there a capture counts as one of
torch's compiles.

CPython allocates frames in blocks of 16 KiB. A loop whose calls cross the end of a block allocates the next block at
every call and frees it at every return. A compile's stack is deep enough to have several such boundaries, in torch and
here; which loops meet one is chance, and they may cost a tenth of the compile. A frame that requests much stack gets a
larger block, whose rest serves the frames that it calls.
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

YOUNG_THRESHOLD = 1_500
"""Number of new objects after which the collector scans the youngest generation (Python's default: 700 or 2,000)."""

OLDEST_THRESHOLD = 60
"""Number of scans of the middle generation after which all objects are scanned (Python's default: 10; 0 if it scans in
small steps)."""

_lock = threading.RLock()
_compiles: set[object] = set()
_settings: list[tuple[int, ...]] = []
"""The program's thresholds, and those set while any of its threads compiles; empty otherwise."""


@contextlib.contextmanager
def less_garbage_collection() -> Iterator[None]:
    """Collect garbage less often for the duration; the last compile of any thread restores the thresholds."""
    deferred_gc = _torch_deferred_gc()
    if deferred_gc is not None:
        with deferred_gc():
            gc.set_threshold(*_raised_thresholds(gc.get_threshold()))
            yield
        return
    compile = object()
    with Undo() as undo, undo:
        undo.add(_leave, compile)
        with _lock:
            _compiles.add(compile)
            if not _settings:
                _raise_thresholds()
        yield


def _torch_deferred_gc() -> Callable[[], contextlib.AbstractContextManager[None]] | None:
    """Return torch's own context manager for this, or None if it has none or does not use it."""
    hook = hook_points.find("torch._dynamo.utils:deferred_full_gc")
    if hook is None or getattr(torch._dynamo.config, "gc_gen2_threshold_during_compile", None) is None:
        return None
    return cast("Callable[[], contextlib.AbstractContextManager[None]]", getattr(*hook))


def _leave(compile: object) -> None:
    with _lock:
        _compiles.discard(compile)
        if not _compiles:
            _restore_thresholds()


def _raise_thresholds() -> None:
    own = gc.get_threshold()
    if (raised := _raised_thresholds(own)) != own:
        _settings[:] = own, raised  # before the change, so that it is undone after an interrupt in between
        gc.set_threshold(*raised)
        _settings[1:] = [gc.get_threshold()]  # Python may round the values


def _raised_thresholds(own: tuple[int, int, int]) -> tuple[int, int, int]:
    young, older, oldest = own
    if young == 0:  # never
        return own
    return max(young, YOUNG_THRESHOLD), older, max(oldest, OLDEST_THRESHOLD) if oldest else 0


def _restore_thresholds() -> None:
    # Keep thresholds that the program has set meanwhile.
    if _settings and gc.get_threshold() == _settings[-1]:
        gc.set_threshold(*_settings[0])
    _settings.clear()


Function = TypeVar("Function", bound=Callable[..., Any])

RESERVED_SLOTS = 1 << 16
"""Stack slots that the frame declares and never uses; the system backs only memory that is written.

A block's size is the smallest power of two that fits them and the frame's own data, so nearly half of it, 512 KiB, is
left for other frames: about a thousand of usual size.
"""


def with_stack_room(function: Function) -> Function:
    """Return ``function`` wrapped so that the frames it calls fit into one block."""

    @functools.wraps(function)
    def with_room(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return cast(Function, reserve_stack(with_room))


def reserve_stack(function: Function) -> Function:
    """Return the same function, changed so that its frame reserves space for those that it calls."""
    # Other Pythons do not allocate frames in blocks.
    if sys.version_info >= (3, 11) and sys.implementation.name == "cpython":
        function.__code__ = function.__code__.replace(co_stacksize=RESERVED_SLOTS)
    return function
