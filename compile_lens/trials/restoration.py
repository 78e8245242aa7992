"""Restoration of the state that a call reaches, so that the call can be repeated.

Benchmarks and checks call a function many times. Its arguments are copied (``copies``); other state (closures, globals,
module state) is saved first and restored on request.
"""

from __future__ import annotations

import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

import torch

from .._torch.ground import values
from .snapshot import Snapshot, version_of, write


class SavedState:
    """The tensors that a call reaches, with their initial values.

    ``reset`` restores values and gradients. With ``state`` it also restores Python state: contents of containers and
    objects, globals that functions name, and class attributes.
    """

    def __init__(self, *roots: Any, state: bool = False) -> None:
        opened: list[Any] = []
        tensors = values.named_tensors((("", root) for root in roots), code=True, opened=opened)
        self._tensors = [_SavedTensor(t) for _, t in tensors if t.device.type != "meta"]
        self._first = {id(s.tensor): s.first for s in self._tensors}
        self._first |= {id(s.grad[0]): s.grad[1] for s in self._tensors if s.grad is not None}
        self._state = [restore for value in opened for restore in _restorers(value)] if state else []

    def first(self, tensor: Any) -> Snapshot | None:
        """Return the initial snapshot of a tensor; None if the call does not reach it."""
        return self._first.get(id(tensor))

    @property
    def tensors(self) -> list[torch.Tensor]:
        """The tensors that the call reaches."""
        return [saved.tensor for saved in self._tensors]

    def changed(self) -> bool:
        """Return True if a tensor's values have changed."""
        return any(saved.changed() for saved in self._tensors)

    def reset(self) -> None:
        """Restore every changed tensor, and the Python state; unchanged tensors are not written to."""
        for saved in self._tensors:
            saved.reset()
        for restore in self._state:
            restore()


class _SavedTensor:
    """A tensor with its initial values and gradient."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor
        self.first = Snapshot.of(tensor)
        self._version = version_of(tensor)
        self._memory = None if self.first.nbytes is None else tensor.untyped_storage()
        self._alias = None if self._memory is None else tensor.detach()
        grad = tensor.grad if tensor.is_leaf else None
        self.grad = None if grad is None else (grad, Snapshot.of(grad))

    def changed(self) -> bool:
        """Return True if the values have changed; if they cannot be read, True if the tensor was written to."""
        same = self.first.is_of(self.tensor)
        return version_of(self.tensor) != self._version if same is None else not same

    def reset(self) -> None:
        """Restore the tensor and its gradient."""
        if self._memory is not None and self.tensor.untyped_storage()._cdata != self._memory._cdata:
            assert self._alias is not None
            self.tensor.data = self._alias  # the call replaced its storage
        if version_of(self.tensor) != self._version or self.first.is_of(self.tensor) is False:
            write(self.tensor, self.first)
            self._version = version_of(self.tensor)
        grad, first = self.grad or (None, None)
        if self.tensor.is_leaf and self.tensor.grad is not grad:
            self.tensor.grad = grad
        if grad is not None and first is not None and first.is_of(grad) is False:
            write(grad, first)


def _restorers(value: Any) -> list[Callable[[], None]]:
    """Return functions that restore the contents of an object; they write only if something changed."""
    if type(value) in (dict, OrderedDict, defaultdict):
        return [_dict_restorer(value)]
    if type(value) in (list, deque, set):
        return [_list_restorer(value)]
    if isinstance(value, types.CellType):
        return [_cell_restorer(value)]
    if isinstance(value, types.FunctionType):
        return [_globals_restorer(value), *(_class_restorer(kind) for _, kind in values.classes(value))]
    own = getattr(value, "__dict__", None)
    if isinstance(own, dict) and not isinstance(value, (type, types.ModuleType)):
        tables = [t for t in own.values() if isinstance(value, torch.nn.Module) and isinstance(t, dict)]
        return [_dict_restorer(own), *map(_dict_restorer, tables)]
    return []


def _dict_restorer(holder: dict[Any, Any]) -> Callable[[], None]:
    before = dict(holder)

    def restore() -> None:
        now = list(holder.items())
        if len(now) != len(before) or any(
            k is not k0 or v is not v0 for (k, v), (k0, v0) in zip(now, before.items())
        ):
            holder.clear()
            holder.update(before)

    return restore


def _list_restorer(holder: Any) -> Callable[[], None]:
    before = list(holder)

    def restore() -> None:
        now = list(holder)
        if len(now) != len(before) or any(v is not v0 for v, v0 in zip(now, before)):
            holder.clear()
            (holder.update if isinstance(holder, set) else holder.extend)(before)

    return restore


def _cell_restorer(cell: types.CellType) -> Callable[[], None]:
    try:
        before = cell.cell_contents
    except ValueError:  # not bound yet
        return lambda: None

    def restore() -> None:
        cell.cell_contents = before

    return restore


def _globals_restorer(function: types.FunctionType) -> Callable[[], None]:
    space = function.__globals__
    before = {name: space.get(name, _UNBOUND) for name in set(values.used_names(function.__code__))}

    def restore() -> None:
        for name, value in before.items():
            if value is _UNBOUND:
                space.pop(name, None)
            elif space.get(name) is not value:
                space[name] = value

    return restore


def _class_restorer(kind: type) -> Callable[[], None]:
    before = values.class_data(kind)

    def restore() -> None:
        now = values.class_data(kind)
        for name in now.keys() - before.keys():
            type.__delattr__(kind, name)
        for name, value in before.items():
            if now.get(name, _UNBOUND) is not value:
                type.__setattr__(kind, name, value)

    return restore


_UNBOUND = object()
