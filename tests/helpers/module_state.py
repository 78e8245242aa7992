"""Snapshot of the mutable state in torch's modules, collected from all of them, and its comparison."""

from __future__ import annotations

import collections
import functools
import sys
import types
import weakref
from collections.abc import Iterator
from typing import Any

from torch.utils._ordered_set import OrderedSet

ROOTS = (
    "torch._dynamo",
    "torch._inductor",
    "torch._functorch",
    "torch.fx",
    "torch._logging",
    "torch._guards",
    "torch._subclasses",
    "torch._higher_order_ops",
    "torch._library",
    "torch._decomp",
    "torch._prims_common",
    "torch.utils",
    "torch.compiler",
    "torch.autograd",
    "torch.overrides",
    "torch.nn.modules.module",
    "torch.nn.parallel",
    "torch._C",
)
PLAIN = (int, float, str, bytes, bool, type(None), tuple, frozenset)
CONTAINERS = (
    dict,
    list,
    set,
    OrderedSet,
    collections.deque,
    weakref.WeakKeyDictionary,
    weakref.WeakValueDictionary,
)
DEPTH = 4


def scan() -> dict[str, Any]:
    """Return every plain value and container reachable from a module or class of torch's compiler, by its path."""
    state: dict[str, Any] = {}
    seen: dict[int, str] = {}
    for name, module in sorted(sys.modules.items()):
        if module is not None and any(name == r or name.startswith(r + ".") for r in ROOTS):
            for key, value in list(vars(module).items()):
                if not key.startswith("__"):
                    _scan(f"{name}:{key}", value, name, state, seen, DEPTH)
    return state


def _scan(
    path: str, value: Any, module: str, state: dict[str, Any], seen: dict[int, str], depth: int
) -> None:
    if isinstance(value, PLAIN):
        state[path] = _plain(value)
        return
    if depth == 0 or seen.setdefault(id(value), path) != path:
        return
    if isinstance(value, CONTAINERS):
        state[path] = (type(value).__name__, len(value))
        for key, item in _items(value):
            _scan(f"{path}[{key}]", item, module, state, seen, depth - 1)
    elif isinstance(value, type):
        if value.__module__ == module:
            for key, item in list(vars(value).items()):
                if not key.startswith("__"):
                    _scan(f"{path}.{key}", item, module, state, seen, depth - 1)
    elif isinstance(value, (types.ModuleType, types.FunctionType, types.BuiltinFunctionType)):
        if isinstance(value, types.FunctionType) and value.__module__ == module:
            for key, item in list(vars(value).items()):
                if not key.startswith("__"):
                    _scan(f"{path}.{key}", item, module, state, seen, depth - 1)
    elif isinstance(value, functools._lru_cache_wrapper):
        pass  # a cache of a function's results
    elif type(value).__module__.startswith("torch"):
        state[path] = type(value).__name__
        for key, item in list(_attributes(value)):
            _scan(f"{path}.{key}", item, module, state, seen, depth - 1)
    else:
        state[path] = type(value).__name__


def _items(value: Any) -> list[tuple[str, Any]]:
    if hasattr(value, "items"):
        return [(_key(k), v) for k, v in list(value.items())]
    if isinstance(value, set):
        return [(_key(k), None) for k in list(value)]
    return [(str(i), v) for i, v in enumerate(list(value)[:2000])]


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    yield from getattr(value, "__dict__", {}).items()


def _key(key: Any) -> str:
    return repr(key) if isinstance(key, (str, int, bytes)) else f"{type(key).__name__} {id(key):x}"


def _plain(value: Any) -> Any:
    text = (
        repr(value)
        if not isinstance(value, (tuple, frozenset))
        else f"{type(value).__name__} of {len(value)}"
    )
    return text[:200]


def diff(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Return one line for each difference."""
    lines = [
        f"{k}: {before[k]} became {after[k]}" for k in before.keys() & after.keys() if before[k] != after[k]
    ]
    lines += [f"{k}: is gone (was {before[k]})" for k in before.keys() - after.keys()]
    lines += [f"{k}: is new ({after[k]})" for k in after.keys() - before.keys()]
    return sorted(lines)
