"""A call that can be repeated: on copies of its tensors, and with all that the function holds put back.

A benchmark calls a function thousands of times. What it was given is copied; what it reaches by itself (closures,
globals, the state of modules) is noted first, and put back whenever asked.
"""

from __future__ import annotations

import copy
import functools
import types
from collections.abc import Iterator
from typing import Any

import torch

REACH = 100_000
"""How many objects are looked at in the search for tensors."""


class Reached:
    """The tensors that a call reaches, and what they held at first.

    ``reset`` puts values and gradients back; ``changed`` says whether any value is another one.
    """

    def __init__(self, *roots: Any) -> None:
        self._found = [(t, _version(t), t.detach().clone(), t.grad, _clone(t.grad)) for t in _tensors(roots)]

    def changed(self) -> bool:
        """Whether a tensor holds other values than at first."""
        return any(not _same(tensor, first) for tensor, _, first, _, _ in self._found)

    def reset(self) -> None:
        """Every tensor as at first. One that nobody wrote to is not written to either."""
        for at, (tensor, version, first, grad, grad_first) in enumerate(self._found):
            if _version(tensor) != version or not _same(tensor, first):
                with torch.inference_mode() if tensor.is_inference() else torch.no_grad():
                    tensor.copy_(first)
                self._found[at] = (tensor, _version(tensor), first, grad, grad_first)
            if tensor.is_leaf and tensor.grad is not grad:
                tensor.grad = grad
            if grad is not None and grad_first is not None and not _same(grad, grad_first):
                with torch.no_grad():
                    grad.copy_(grad_first)


def copied(
    fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """The call with tensors of its own: fresh leaves with the same values, and a module of its own.

    A module that cannot be copied is used as it is (``Reached`` puts it back).
    """
    from ._torch import tree

    memo: dict[int, torch.Tensor] = {}

    def fresh(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        if id(value) not in memo:
            memo[id(value)] = _fresh(value)
        return memo[id(value)]

    module = fn if isinstance(fn, torch.nn.Module) else getattr(fn, "__self__", None)
    if isinstance(module, torch.nn.Module):
        try:
            twin = copy.deepcopy(module)
        except Exception:  # a lock, a result of autograd, anything: a user's class may refuse in its own way
            twin = module
        fn = twin if fn is module else getattr(twin, fn.__name__)
    new_args, new_kwargs = tree.map_leaves(fresh, (args, kwargs))
    return fn, new_args, new_kwargs


def _fresh(tensor: torch.Tensor) -> torch.Tensor:
    made = tensor.detach().clone(memory_format=torch.preserve_format)
    if type(tensor) is torch.Tensor and tensor.layout == torch.strided and made.stride() != tensor.stride():
        # Rows with gaps, or one row many times: what is compiled depends on it.
        storage = tensor.detach().untyped_storage().clone()
        made = torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(
            storage, tensor.storage_offset(), tensor.size(), tensor.stride()
        )
    return made.requires_grad_(tensor.requires_grad)


def _tensors(roots: Any) -> list[torch.Tensor]:
    found: dict[int, torch.Tensor] = {}
    seen: dict[int, Any] = {}
    pending = [roots]
    while pending and len(seen) < REACH:
        item = pending.pop()
        if id(item) in seen:
            continue
        seen[id(item)] = item
        if isinstance(item, torch.Tensor):
            if item.device.type != "meta":
                found[id(item)] = item
        else:
            pending.extend(_inside(item))
    return list(found.values())


def _inside(item: Any) -> Iterator[Any]:
    """What an object of the user's leads to: not modules, classes, or what is torch's own."""
    if isinstance(item, (types.ModuleType, type, str, bytes, int, float, complex)) or item is None:
        return
    if isinstance(item, dict):
        yield from item.values()
    elif isinstance(item, (list, tuple, set, frozenset)):
        yield from item
    elif isinstance(item, functools.partial):
        yield from (item.func, item.args, item.keywords)
    elif isinstance(item, types.MethodType):
        yield from (item.__self__, item.__func__)
    elif isinstance(item, types.CellType):
        try:
            yield item.cell_contents
        except ValueError:  # a name that is not bound yet
            return
    elif isinstance(item, types.FunctionType):
        if not (item.__module__ or "").startswith("torch"):
            yield from item.__closure__ or ()
            yield from (item.__defaults__, item.__kwdefaults__, item.__dict__)
            yield from (item.__globals__[name] for name in _names(item.__code__) if name in item.__globals__)
    elif isinstance(item, torch.nn.Module) or not (type(item).__module__ or "").startswith("torch"):
        yield from vars(item).values() if hasattr(item, "__dict__") else ()
        if isinstance(item, torch.nn.Module):
            yield type(item).forward


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _version(tensor: torch.Tensor) -> int:
    return 0 if tensor.is_inference() else tensor._version


def _clone(tensor: torch.Tensor | None) -> torch.Tensor | None:
    return None if tensor is None else tensor.detach().clone()


def _same(tensor: torch.Tensor, first: torch.Tensor) -> bool:
    now = tensor.detach()
    if now.shape != first.shape or now.dtype != first.dtype:
        return False
    return bool(torch.equal(now, first)) or bool(((now == first) | (now.isnan() & first.isnan())).all())
