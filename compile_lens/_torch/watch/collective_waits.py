"""The waits of a process for what it issued earlier: for a handle of ``torch.distributed``, or for a tensor that a
functional collective returned. They decide which ranks wait for each other.
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
"""A log, and the position of a call in it."""

_positions: weakref.WeakKeyDictionary[Any, list[Position]] = weakref.WeakKeyDictionary()
"""By handle the calls that have not been waited for."""
_by_address: dict[int, list[Position]] = {}
"""By address of a tensor that a call fills: functional collectives return tensors, and keep the handle themselves."""


class _Thread(threading.local):
    latest: Any = None
    """The handle of the latest call. It is Python's object for the handle, which the caller gets only if it lives."""
    batch: list[Position] | None = None
    """Calls of a batch that has one handle for all."""


_thread = _Thread()

_WAITS = ("wait", "synchronize", "block_current_stream")
_PASSES_ON = ("get_future", "get_future_result", "is_completed")
"""Methods of a handle after which it is not known when the process waits."""


@hidden_from_dynamo
def keep_call(work: Any, tensors: Iterable[torch.Tensor], positions: list[Position]) -> None:
    """Note the handle of a call, and the tensors that it fills."""
    if _thread.batch is not None:
        _thread.batch += positions
    if work is not None:
        _thread.latest = work
        _positions[work] = positions
    for tensor in tensors:
        _by_address[_address(tensor)] = positions


def handle(result: Any) -> Any:
    """Return Python's object for the handle in the result of an operator; None if it has none."""
    parts = result if isinstance(result, (tuple, list)) else (result,)
    work = torch._C._distributed_c10d.Work
    return next((work.unbox(part) for part in reversed(parts) if isinstance(part, torch.ScriptObject)), None)


@hidden_from_dynamo
def place(undo: Undo) -> None:
    """Observe the waits until ``undo``."""
    distributed: Any = torch._C._distributed_c10d
    undo.add(_forget)
    for names, observer in ((_WAITS, _wait), (_PASSES_ON, _pass_on)):
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
    """Have a message from any process say that it came from ``source()``, a rank of its group, until ``undo``: the
    handle of a call without other processes does not know it."""

    def call(real: Callable[..., Any], *args: Any) -> int:
        return source()

    for name in ("_source_rank", "source_rank"):
        _replace(torch._C._distributed_c10d.Work, name, hidden_from_dynamo(call), undo)


def _forget() -> None:
    _positions.clear()
    _by_address.clear()


def _address(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage().data_ptr())


def _replace(owner: type, name: str, observer: Callable[..., Any], undo: Undo) -> None:
    """Put an observer around a method that is not Python's. Dynamo knows such a method by its type, and so it keeps
    it: a function of Python's would be traced."""
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
def _pass_on(real: Callable[..., Any], work: Any, *args: Any, **kwargs: Any) -> Any:
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
        if not (tensor.is_meta or is_fake(tensor)):  # those have no address
            with observing(scopes.owners(), claims.COLLECTIVES):
                for log, position in _by_address.pop(_address(tensor), ()):
                    log.wait(position)
        return operator.redispatch(below, tensor)

    return hidden_from_dynamo(wait)
