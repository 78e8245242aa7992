"""Wrappers around torch's own functions that are in place only while a capture runs.

Each wrapper looks up the capture *of this thread*; without one it calls the original, so that a compile on another
thread is neither recorded nor changed. Captures are counted: the first installs the wrappers, the last removes them.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Concatenate

from . import hook_points, placement
from .hook_calls import call, skip_in_dynamo
from .placement import CONVERT_FRAME, as_convert_frame
from .recorder import Slot, T
from .undo import Undo

if TYPE_CHECKING:
    from .recorder import Draft, Recorder

Wrap = Callable[..., Any]
"""``wrap(draft, real, *args, **kwargs)``: called in place of ``real`` while ``draft`` is being compiled."""


class _Local(threading.local):
    stack: list[Draft | None] | None = None  # a class attribute, so that reading it needs no call
    recorder: Recorder | None = None


_local = _Local()
_placement = placement.Placement()
_registry: dict[str, Wrap] = {}
_free: dict[str, Wrap] = {}
_factories: set[str] = set()
"""Paths in the registry whose function creates the wrapper itself."""
_slots: dict[str, Slot[Any]] = {}
"""Slots of the paths whose wrapper is called with the slot's value instead of the draft."""


def hook(path: str, *claims: str) -> Callable[[Wrap], Wrap]:
    """Register a wrapper for ``"module:Class.attribute"``, called only while a draft is current; ``claims``
    (``record.claims``) rest on it."""
    hook_points.declare(path, *claims)

    def register(wrap: Wrap) -> Wrap:
        _registry[path] = wrap
        return wrap

    return register


def slot_hook(
    path: str, slot: Slot[T], *claims: str
) -> Callable[[Callable[Concatenate[T, ...], Any]], Callable[Concatenate[T, ...], Any]]:
    """Register a wrapper that is called only while the current draft has a value in ``slot``: ``wrap(value,
    real, *args, **kwargs)``."""
    hook_points.declare(path, *claims)

    def register(wrap: Callable[Concatenate[T, ...], Any]) -> Callable[Concatenate[T, ...], Any]:
        _registry[path] = wrap
        _slots[path] = slot
        return wrap

    return register


def free_hook(path: str, *claims: str) -> Callable[[Wrap], Wrap]:
    """Register a wrapper that is called with or without a draft and finds its recorder itself: ``wrap(real, *args,
    **kwargs)``."""
    hook_points.declare(path, *claims)

    def register(wrap: Wrap) -> Wrap:
        _free[path] = wrap
        inner: Any = wrap
        while inner is not None and path.startswith(CONVERT_FRAME):
            inner = getattr(as_convert_frame(inner), "__wrapped__", None)
        return wrap

    return register


def factory_hook(path: str, *claims: str) -> Callable[[Wrap], Wrap]:
    """Register a function that creates the wrapper itself (``make(real)``) and saves one Python call, for functions
    that run tens of thousands of times. The wrapper must catch its own errors."""
    hook_points.declare(path, *claims)

    def register(make: Wrap) -> Wrap:
        _registry[path] = make
        _factories.add(path)
        return make

    return register


def current() -> Draft | None:
    """Return the draft that is being compiled on this thread, or None."""
    stack = _local.stack
    return stack[-1] if stack else None


def is_capturing() -> bool:
    """Return True if a capture or its backend runs on this thread, so that a compile there is not the program's."""
    return bool(_local.stack)


def in_slot(slot: Slot[T]) -> T | None:
    """Return the value in ``slot`` of the draft that is being compiled on this thread."""
    stack = _local.stack  # as ``current``, without a call
    draft = stack[-1] if stack else None
    value: T | None = None if draft is None else draft.slots.get(slot)
    return value


@contextlib.contextmanager
def compiling(draft: Draft | None) -> Iterator[None]:
    """Make ``draft`` current on this thread; ``None`` switches recording off (a nested capture)."""
    with Undo() as undo, undo:
        compile_for(undo, draft)
        yield


def compile_for(undo: Undo, draft: Draft | None) -> None:
    """Make ``draft`` current until ``undo``, which also removes nested drafts that an interrupt left."""
    stack = _local.stack
    if stack is None:
        stack = _local.stack = []
    undo.add(stack.__delitem__, slice(len(stack), None))
    stack.append(draft)


@contextlib.contextmanager
def in_place(recorder: Recorder | None = None) -> Iterator[None]:
    """Keep every wrapper in place for the duration."""
    with Undo() as undo, undo:
        place(undo, recorder)
        yield


def place(undo: Undo, recorder: Recorder | None = None) -> None:
    """Keep every wrapper in place until ``undo``. ``recorder`` notes errors of wrappers that this thread calls without
    a draft."""
    undo.add(setattr, _local, "recorder", _local.recorder)
    _local.recorder = recorder
    _placement.keep(undo, _fill)


def _fill() -> None:
    for path, wrap in (*_registry.items(), *_free.items()):
        target = hook_points.find(path)
        if target is None:
            continue
        _placement.put(*target, functools.partial(_wrapper, path, wrap))


def failed(path: str, error: Exception) -> None:
    """Note that a wrapper failed: the claims that rest on it are unknown."""
    draft = current()
    recorder = _local.recorder if draft is None else draft.recorder
    if recorder is not None:
        recorder.lose(path, f"an observer of compile_lens failed ({type(error).__name__}: {error})")


def _wrapper(path: str, wrap: Wrap, real: Any) -> Any:
    note = functools.partial(failed, path)
    if path in _factories:
        try:
            return functools.wraps(real)(wrap(real))
        except Exception as error:
            note(error)
            return real
    slot = _slots.get(path)
    if slot is not None:
        bound = _bind_slot(note, wrap, real, slot)
    else:
        bound = _bind(note, wrap, real) if path in _registry else _bind_free(note, wrap, real)
    if path.startswith(CONVERT_FRAME):
        as_convert_frame(bound)
    # If a backward is lowered on its first run, Dynamo evaluates every frame that is not torch's own.
    for function in (bound, wrap):
        skip_in_dynamo(function)
    return staticmethod(bound) if isinstance(real, staticmethod) else bound


Note = Callable[[Exception], None]


def _bind(note: Note, wrap: Wrap, real: Any) -> Any:
    @functools.wraps(real)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        # As ``current``, without a call: some of these run for every line that Inductor writes.
        stack = _local.stack
        draft = stack[-1] if stack else None
        return real(*args, **kwargs) if draft is None else call(note, wrap, (draft,), real, args, kwargs)

    return wrapper


def _bind_free(note: Note, wrap: Wrap, real: Any) -> Any:
    @functools.wraps(real)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return call(note, wrap, (), real, args, kwargs)

    return wrapper


def _bind_slot(note: Note, wrap: Wrap, real: Any, slot: Slot[Any]) -> Any:
    @functools.wraps(real)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        stack = _local.stack  # as ``in_slot``, without a call
        draft = stack[-1] if stack else None
        if draft is None or slot not in draft.slots:
            return real(*args, **kwargs)
        return call(note, wrap, (draft.slots[slot],), real, args, kwargs)

    return wrapper
