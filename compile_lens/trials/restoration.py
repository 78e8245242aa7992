"""A call that can be repeated: all that its function reaches is put back.

A benchmark calls a function thousands of times, a check some times. What it is given is copied (``copies``); what it
reaches by itself (closures, globals, the state of modules) is noted first, and put back whenever asked.
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
    """The tensors that a call reaches, and what they held at first.

    ``reset`` puts values and gradients back; ``changed`` says whether any value is another one. With ``state`` plain
    Python state is put back too: the contents of containers and objects, and the globals and the attributes of classes
    that a function sets.
    """

    def __init__(self, *roots: Any, state: bool = False) -> None:
        opened: list[Any] = []
        tensors = values.named_tensors((("", root) for root in roots), code=True, opened=opened)
        self._tensors = [_SavedTensor(t) for _, t in tensors if t.device.type != "meta"]
        self._first = {id(s.tensor): s.first for s in self._tensors}
        self._first |= {id(s.grad[0]): s.grad[1] for s in self._tensors if s.grad is not None}
        self._state = [put_back for value in opened for put_back in _restorers(value)] if state else []

    def first(self, tensor: Any) -> Snapshot | None:
        """Return what a tensor that the call reaches held at first; None for one that it does not reach."""
        return self._first.get(id(tensor))

    @property
    def tensors(self) -> list[torch.Tensor]:
        """The tensors that the call reaches."""
        return [saved.tensor for saved in self._tensors]

    def changed(self) -> bool:
        """Return True if a tensor holds other values than at first."""
        return any(saved.changed() for saved in self._tensors)

    def reset(self) -> None:
        """Every tensor as at first. One that nobody wrote to is not written to either."""
        for saved in self._tensors:
            saved.reset()
        for put_back in self._state:
            put_back()


class _SavedTensor:
    """A tensor, what it held at first, and its gradient."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor
        self.first = Snapshot.of(tensor)
        self._version = version_of(tensor)
        self._memory = None if self.first.nbytes is None else tensor.untyped_storage()
        self._alias = None if self._memory is None else tensor.detach()
        grad = tensor.grad if tensor.is_leaf else None
        self.grad = None if grad is None else (grad, Snapshot.of(grad))

    def changed(self) -> bool:
        """Return True if the tensor holds other values than at first; if they cannot be read, if it was written
        to."""
        same = self.first.is_of(self.tensor)
        return version_of(self.tensor) != self._version if same is None else not same

    def reset(self) -> None:
        """The tensor as at first."""
        if self._memory is not None and self.tensor.untyped_storage()._cdata != self._memory._cdata:
            assert self._alias is not None
            self.tensor.data = self._alias  # the call gave it other memory
        if version_of(self.tensor) != self._version or self.first.is_of(self.tensor) is False:
            write(self.tensor, self.first)
            self._version = version_of(self.tensor)
        grad, first = self.grad or (None, None)
        if self.tensor.is_leaf and self.tensor.grad is not grad:
            self.tensor.grad = grad
        if grad is not None and first is not None and first.is_of(grad) is False:
            write(grad, first)


def _restorers(value: Any) -> list[Callable[[], None]]:
    """Return functions that put the contents of a container back; they write only what has changed."""
    if type(value) in (dict, OrderedDict, defaultdict):
        return [_of_dict(value)]
    if type(value) in (list, deque, set):
        return [_of_list(value)]
    if isinstance(value, types.CellType):
        return [_of_cell(value)]
    if isinstance(value, types.FunctionType):
        return [_of_globals(value), *(_of_class(kind) for _, kind in values.classes(value))]
    own = getattr(value, "__dict__", None)
    if isinstance(own, dict) and not isinstance(value, (type, types.ModuleType)):
        tables = [t for t in own.values() if isinstance(value, torch.nn.Module) and isinstance(t, dict)]
        return [_of_dict(own), *map(_of_dict, tables)]
    return []


def _of_dict(holder: dict[Any, Any]) -> Callable[[], None]:
    before = dict(holder)

    def put_back() -> None:
        now = list(holder.items())
        if len(now) != len(before) or any(
            k is not k0 or v is not v0 for (k, v), (k0, v0) in zip(now, before.items())
        ):
            holder.clear()
            holder.update(before)

    return put_back


def _of_list(holder: Any) -> Callable[[], None]:
    before = list(holder)

    def put_back() -> None:
        now = list(holder)
        if len(now) != len(before) or any(v is not v0 for v, v0 in zip(now, before)):
            holder.clear()
            (holder.update if isinstance(holder, set) else holder.extend)(before)

    return put_back


def _of_cell(cell: types.CellType) -> Callable[[], None]:
    try:
        before = cell.cell_contents
    except ValueError:  # a name that is not bound yet
        return lambda: None

    def put_back() -> None:
        cell.cell_contents = before

    return put_back


def _of_globals(function: types.FunctionType) -> Callable[[], None]:
    space = function.__globals__
    before = {name: space.get(name, _UNBOUND) for name in set(values.used_names(function.__code__))}

    def put_back() -> None:
        for name, value in before.items():
            if value is _UNBOUND:
                space.pop(name, None)
            elif space.get(name) is not value:
                space[name] = value

    return put_back


def _of_class(kind: type) -> Callable[[], None]:
    before = values.class_data(kind)

    def put_back() -> None:
        now = values.class_data(kind)
        for name in now.keys() - before.keys():
            type.__delattr__(kind, name)
        for name, value in before.items():
            if now.get(name, _UNBOUND) is not value:
                type.__setattr__(kind, name, value)

    return put_back


_UNBOUND = object()
