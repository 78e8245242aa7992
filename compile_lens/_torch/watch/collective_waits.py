"""Waits of a process for earlier collectives: on a handle of ``torch.distributed``, or on a tensor returned by a
functional collective. They determine which ranks wait for each other.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch._subclasses.fake_tensor import is_fake

from ...record import claims
from ..ground.undo import Undo
from . import scopes
from .issue_log import IssueLog
from .observers import hidden_from_dynamo, observing

Position = tuple[IssueLog, int]
"""A log and the position of a call in it."""

_positions: weakref.WeakKeyDictionary[Any, list[Position]] = weakref.WeakKeyDictionary()
"""Calls that have not been waited for, by handle."""
_by_address: dict[int, list[Position]] = {}
"""Calls by address of a tensor that they fill, since functional collectives return tensors and keep the handle."""


class _Thread(threading.local):
    latest: Any = None
    """The handle of the latest call: a reference to its Python object, so that the caller receives the same one."""
    batch: list[Position] | None = None
    """Calls of the current batch, which share one handle."""


_thread = _Thread()

_WAITS = ("wait", "synchronize", "block_current_stream")
_UNKNOWN_WAITS = ("get_future", "get_future_result", "is_completed")
"""Methods of a handle after which the time of the wait is unknown."""


@hidden_from_dynamo
def keep_call(work: Any, tensors: Iterable[torch.Tensor], positions: list[Position]) -> None:
    """Record the handle of a call, and the tensors that it fills."""
    if _thread.batch is not None:
        _thread.batch += positions
    if work is not None:
        _thread.latest = work
        _positions[work] = positions
    for tensor in tensors:
        _by_address[_address(tensor)] = positions


def handle(result: Any) -> Any:
    """Return the Python object of the handle in an operator's result; None if there is none."""
    parts = result if isinstance(result, (tuple, list)) else (result,)
    work = torch._C._distributed_c10d.Work
    return next((work.unbox(part) for part in reversed(parts) if isinstance(part, torch.ScriptObject)), None)


@hidden_from_dynamo
def place(undo: Undo) -> None:
    """Observe waits until ``undo``."""
    distributed: Any = torch._C._distributed_c10d
    undo.add(_clear)
    for names, observer in ((_WAITS, _wait), (_UNKNOWN_WAITS, _wait_unknown)):
        for name in names:
            _replace(distributed.Work, name, observer, undo)
    _replace(distributed.ProcessGroup, "_start_coalescing", _begin_batch, undo)
    _replace(distributed.ProcessGroup, "_end_coalescing", _end_batch, undo)
    packet: Any = getattr(torch.ops._c10d_functional, "wait_tensor", None)
    if packet is not None:
        library = torch.library.Library("_c10d_functional", "IMPL")
        undo.add(library._destroy)
        library.impl("wait_tensor", _kernel(packet.default), "BackendSelect", with_keyset=True)


def give_source(undo: Undo, source: Callable[[], int]) -> None:
    """Make a message received from any process report the sender ``source()``, a rank of its group, until ``undo``; a
    handle of the fake group has none."""

    def call(real: Callable[..., Any], *args: Any) -> int:
        return source()

    for name in ("_source_rank", "source_rank"):
        _replace(torch._C._distributed_c10d.Work, name, hidden_from_dynamo(call), undo)


def _clear() -> None:
    _positions.clear()
    _by_address.clear()


def _address(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage().data_ptr())


def _replace(owner: type, name: str, observer: Callable[..., Any], undo: Undo) -> None:
    """Wrap a builtin method with an observer, as an instance method in C: Dynamo would trace a Python function."""
    real = vars(owner).get(name)
    if real is None:
        return
    new: Any = ctypes.pythonapi.PyInstanceMethod_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.py_object]

    def call(*args: Any, **kwargs: Any) -> Any:
        return observer(getattr(real, "__func__", real), *args, **kwargs)

    undo.add(setattr, owner, name, real)
    setattr(owner, name, new(hidden_from_dynamo(call)))


@hidden_from_dynamo
def _wait(real: Callable[..., Any], work: Any, *args: Any, **kwargs: Any) -> Any:
    with observing(scopes.owners(), claims.COLLECTIVES):
        for log, position in _positions.pop(work, ()):
            log.wait(position)
        if _thread.latest is work:
            _thread.latest = None
    return real(work, *args, **kwargs)


@hidden_from_dynamo
def _wait_unknown(real: Callable[..., Any], work: Any, *args: Any, **kwargs: Any) -> Any:
    with observing(scopes.owners(), claims.COLLECTIVES):
        for log, position in _positions.get(work, ()):
            log.wait_unknown(position)
    return real(work, *args, **kwargs)


@hidden_from_dynamo
def _begin_batch(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    _thread.batch = []
    return real(*args, **kwargs)


@hidden_from_dynamo
def _end_batch(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    result = real(*args, **kwargs)
    with observing(scopes.owners(), claims.COLLECTIVES):
        positions, _thread.batch = _thread.batch, None
        if positions and result is not None:
            _positions[result] = positions
    return result


def _kernel(operator: Any) -> Callable[..., Any]:
    def wait(keyset: Any, tensor: torch.Tensor) -> Any:
        below = keyset.remove(torch._C.DispatchKey.BackendSelect)
        if not (tensor.is_meta or is_fake(tensor)):  # these tensors have no address
            with observing(scopes.owners(), claims.COLLECTIVES):
                for log, position in _by_address.pop(_address(tensor), ()):
                    log.wait(position)
        return operator.redispatch(below, tensor)

    return hidden_from_dynamo(wait)
