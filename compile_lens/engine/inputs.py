"""The callable and the arguments of a capture: their names, their facts, and weak references to them."""

from __future__ import annotations

import functools
import inspect
import weakref
from typing import Any

import torch

from .._torch.ground.unseen import unseen


def name_of(fn: Any) -> str:
    """A name for a callable that a reader would recognise."""
    from .._torch.frames.dynamo import qualified_name

    if isinstance(fn, functools.partial):
        return f"partial({name_of(fn.func)})"
    if isinstance(fn, torch.nn.Module):
        inner = fn.__dict__.get("_modules", {}).get("_orig_mod")
        return type(inner if inner is not None else fn).__name__
    return qualified_name(fn) or str(getattr(fn, "__name__", None) or type(fn).__name__)


@unseen
def tensors(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[tuple[str, torch.Tensor]]:
    from .._torch.ground import containers

    named = [(f"argument {i}", value) for i, value in enumerate(args)] + list(kwargs.items())
    return [(name, x) for name, value in named for x in containers.tensors(value)]


def held(fn: Any) -> list[tuple[str, torch.Tensor]]:
    """The parameters and buffers of a module, by name."""
    module = fn if isinstance(fn, torch.nn.Module) else getattr(fn, "__self__", None)
    if not isinstance(module, torch.nn.Module):
        return []
    return [*module.named_parameters(), *module.named_buffers()]


@unseen
def given(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """Bytes of the tensors that a function and its arguments hold, each piece of memory once.

    Of a function these are tensors, modules and optimizers that it closes over, names, or has for defaults.
    """
    from .._torch.ground import containers

    roots: list[Any] = [*args, *kwargs.values()]
    while isinstance(fn, functools.partial):
        roots += [*fn.args, *fn.keywords.values()]
        fn = fn.func
    roots += [fn, getattr(fn, "__self__", None)]
    function = getattr(fn, "__func__", fn)
    if inspect.isfunction(function):
        closed = inspect.getclosurevars(function)
        roots += [*closed.nonlocals.values(), *closed.globals.values(), *(function.__defaults__ or ())]
    found: dict[int, int] = {}
    for leaf in (x for root in roots for x in containers.leaves(root)):
        for tensor in _tensors_of(leaf):
            for one in (tensor, tensor.grad if tensor.is_leaf else None):
                if one is not None and one.layout is torch.strided:
                    storage = one.untyped_storage()
                    found[storage._cdata] = storage.nbytes()
    return sum(found.values())


def _tensors_of(value: Any) -> list[torch.Tensor]:
    from .._torch.ground import containers

    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, torch.nn.Module):
        return [*value.parameters(), *value.buffers()]
    if isinstance(value, torch.optim.Optimizer):
        return containers.tensors((value.param_groups, [*value.state.values()]))
    return []


@unseen
def describe_all(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    names: list[str] = []
    try:
        parameters = inspect.signature(
            fn.forward if isinstance(fn, torch.nn.Module) else fn
        ).parameters.values()
        for p in parameters:
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
                names.append(p.name)
    except (TypeError, ValueError):  # no signature to read names from
        names = []
    lines = [f"{names[i] if i < len(names) else f'argument {i}'}: {describe(v)}" for i, v in enumerate(args)]
    return lines + [f"{k}: {describe(v)}" for k, v in kwargs.items()]


@unseen
def describe(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        dtype = str(value.dtype).removeprefix("torch.")
        grad = " requires_grad" if value.requires_grad else ""
        return f"{dtype}[{', '.join(map(str, value.shape))}] {value.device}{grad}"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__} of {len(value)}"
    if isinstance(value, dict):
        return f"dict of {len(value)}"
    return short(value)


def short(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"a {describe(value)} tensor"
    try:
        text = repr(value)
    except Exception:  # the user's own repr failed; its type is all there is to say
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 80 else text[:77] + "..."


class Live:
    """Weak references to what was captured, so that ``verify`` can run it again while the caller holds it."""

    def __init__(self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        from .._torch.ground import containers

        self._fn = _weak(fn)
        leaves, self._spec = containers.flatten((args, kwargs))
        self._leaves = [_weak(x) if isinstance(x, torch.Tensor) else (lambda x=x: x) for x in leaves]

    def call(self) -> tuple[Any, tuple[Any, ...], dict[str, Any]] | None:
        """The function, its arguments and keyword arguments; None if any of them is gone."""
        from .._torch.ground import containers

        fn = self._fn()
        leaves = [ref() for ref in self._leaves]
        if fn is None:
            return None
        if any(v is None and isinstance(r, weakref.ref) for v, r in zip(leaves, self._leaves)):
            return None
        args, kwargs = containers.unflatten(leaves, self._spec)
        return fn, args, kwargs


def _weak(value: Any) -> Any:
    if inspect.ismethod(value):
        return weakref.WeakMethod(value)
    try:
        return weakref.ref(value)
    except TypeError:  # a builtin: it does not go away
        return lambda: value
