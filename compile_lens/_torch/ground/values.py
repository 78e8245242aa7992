"""Values and their parts (tensors and plain values, each named by its access path), and torch's pytrees."""

from __future__ import annotations

import dataclasses
import functools
import math
import sys
import types
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
from torch.utils import _pytree

MAX_OBJECTS = 100_000
"""Number of objects after which the search for tensors stops."""

DENSE_LAYOUTS = frozenset((torch.strided, torch._mkldnn))
"""Layouts in which a tensor has an element for each index."""

NUMBERS = (bool, int, float, complex)
ATOMS = (
    type(None),
    *NUMBERS,
    str,
    bytes,
    type,
    range,
    slice,
    types.ModuleType,
    types.CodeType,
    types.BuiltinFunctionType,
    weakref.ref,
    torch.Tensor,
    torch.Generator,
    torch.dtype,
    torch.device,
    torch.layout,
    torch.memory_format,
)
"""Types without parts, or whose parts are ignored."""

Part = tuple[str, Any]


def parts(
    roots: Iterable[Part],
    code: bool = False,
    opened: list[Any] | None = None,
    shapes: dict[str, Shape] | None = None,
) -> Iterator[Part]:
    """Yield every tensor and plain value in ``roots`` with its name, in order. A container that appears several times
    is opened once; with ``code``, a tensor too is yielded once, under its first name.

    Containers of any kind are opened: Python's, dataclasses, those that torch's pytree knows, modules, objects with
    attributes. With ``code``, functions are opened too: their closures, defaults and the globals that they name.
    ``opened`` collects every opened container, ``shapes`` the shape of each one that holds data.
    """
    seen: dict[int, Any] = {}
    known: dict[int, Shape] = {}
    pending: list[Part] = list(roots)[::-1]
    for _ in range(MAX_OBJECTS):
        if not pending:
            return
        name, value = pending.pop()
        if not isinstance(value, ATOMS) or (code and isinstance(value, torch.Tensor)):
            if id(value) in seen:
                if shapes is not None and id(value) in known:
                    shapes[name] = known[id(value)]
                continue
            seen[id(value)] = value
        inner = contents(value, code)
        if inner is None:
            yield name, value
        else:
            if opened is not None:
                opened.append(value)
            if shapes is not None and not isinstance(value, _CODE):
                shapes[name] = known[id(value)] = Shape.of(value, len(inner))
            pending += [(_joined(name, step), child) for step, child in inner][::-1]


_CODE = (types.FunctionType, types.MethodType, types.CellType)


@dataclasses.dataclass(frozen=True)
class Shape:
    """A container without its parts: its class, its length, and the order of its keys."""

    kind: type
    size: int
    keys: tuple[Any, ...] = ()

    @classmethod
    def of(cls, value: Any, size: int) -> Shape:
        keys = tuple(value) if isinstance(value, Mapping) else ()
        return cls(type(value), size, tuple(k for k in keys if isinstance(k, (str, bytes, *NUMBERS))))


def named_tensors(
    roots: Iterable[Part], code: bool = False, opened: list[Any] | None = None
) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the tensors among ``parts``, each with its name."""
    return ((n, x) for n, x in parts(roots, code, opened) if isinstance(x, torch.Tensor))


def contents(value: Any, code: bool = False) -> list[Part] | None:
    """Return the parts of a value, each with its access step, such as ``.name``; None if it is no container."""
    if isinstance(value, ATOMS):
        return None
    if isinstance(value, torch.nn.Module):
        return [*_module_parts(value), *([("forward", type(value).forward)] if code else [])]
    if isinstance(value, Mapping):
        return [(f"[{_key(k, i)}]", v) for i, (k, v) in enumerate(value.items())]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return [(f".{n}", v) for n, v in zip(value._fields, value)]
    if isinstance(value, (list, tuple, deque)):
        return [(f"[{i}]", v) for i, v in enumerate(value)]
    if isinstance(value, (set, frozenset)):
        # Tensors in a set have no order and are equal only to themselves, so only sets of plain values can be compared.
        return [(f"{{{i}}}", v) for i, v in enumerate(value)] if code else None
    if isinstance(value, functools.partial):
        return [(".func", value.func), (".args", value.args), (".keywords", value.keywords)]
    if isinstance(value, types.MethodType):
        return [(".self", value.__self__), *([(".function", value.__func__)] if code else [])]
    if isinstance(value, types.CellType):
        try:
            return [("", value.cell_contents)]
        except ValueError:  # the variable is not bound yet
            return []
    if isinstance(value, types.FunctionType):
        return _function_parts(value) if code else None
    return _object_parts(value)


def _module_parts(module: torch.nn.Module) -> list[Part]:
    own = vars(module)
    registered = [
        (f".{n}", v)
        for table in ("_parameters", "_buffers", "_modules")
        for n, v in own.get(table, {}).items()
        if v is not None
    ]
    return registered + [(f".{n}", v) for n, v in own.items() if n not in _MODULE_ATTRIBUTES]


COMPILED_MARK = "_is_torch_compile"
"""Attribute that torch sets on the result of ``torch.compile``; for ``module.compile()``, on the module itself."""

_MODULE_ATTRIBUTES = frozenset(vars(torch.nn.Module())) | {
    "_compiled_call_impl",
    "_forward_hooks_always_called",
    COMPILED_MARK,
}


def _function_parts(function: types.FunctionType) -> list[Part]:
    if (function.__module__ or "").partition(".")[0] == "torch":
        return []
    names = function.__code__.co_freevars
    held: list[Part] = [(f"closure {n}", c) for n, c in zip(names, function.__closure__ or ())]
    held += [("default", function.__defaults__), ("default", function.__kwdefaults__)]
    held += [("attribute", function.__dict__)]
    space = function.__globals__
    held += [(f"global {n}", space[n]) for n in used_names(function.__code__) if n in space]
    return held + [(f"{n}.{a}", v) for n, kind in classes(function) for a, v in class_data(kind).items()]


def classes(function: types.FunctionType) -> Iterator[tuple[str, type]]:
    """Yield the user's own classes that a function names in its globals and closure."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        kind = next((v for _, v in contents(cell) or ()), None)
        if isinstance(kind, type) and _is_own(kind):
            yield f"closure {name}", kind
    for name in dict.fromkeys(used_names(function.__code__)):
        kind = function.__globals__.get(name)
        if isinstance(kind, type) and _is_own(kind):
            yield f"global {name}", kind


def _is_own(kind: type) -> bool:
    home = str(getattr(kind, "__module__", "")).partition(".")[0]
    return home not in _LIBRARIES and home not in sys.stdlib_module_names


_LIBRARIES = ("", "torch", "numpy", "triton")


def class_data(kind: type) -> dict[str, Any]:
    """Return the attributes of a class other than methods and Python's own."""
    return {
        name: value
        for name, value in vars(kind).items()
        if not name.startswith("__") and name != "_abc_impl" and not hasattr(type(value), "__get__")
    }


def _object_parts(value: Any) -> list[Part] | None:

    if type(value).__module__ == "numpy":
        return None
    nodes = children(value)
    if nodes is not None:
        return [(step or f"[{i}]", v) for i, (step, v) in enumerate(nodes)]
    if dataclasses.is_dataclass(value):
        names = [f.name for f in dataclasses.fields(value) if hasattr(value, f.name)]
        more = [n for n in getattr(value, "__dict__", {}) if n not in names]
        return [(f".{n}", getattr(value, n)) for n in (*names, *more)]
    home = type(value).__module__ or ""
    if home.partition(".")[0] == "torch" and not home.startswith(("torch.optim", "torch.distributions")):
        return []  # torch's own bookkeeping
    attributes = dict(getattr(value, "__dict__", {}))
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            with_value = getattr(value, name, _ABSENT) if not name.startswith("__") else _ABSENT
            if with_value is not _ABSENT:
                attributes.setdefault(name, with_value)
    return [(f".{n}", v) for n, v in attributes.items()] if attributes else None


_ABSENT = object()


def used_names(code: types.CodeType) -> Iterator[str]:
    """Yield the names of globals and attributes that a function and its inner functions use."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from used_names(constant)


def _joined(name: str, step: str) -> str:
    if not name:
        return step.removeprefix(".")
    return f"{name}{step}" if not step or step[0] in ".[{" else f"{name} {step}"


def _key(key: Any, position: int) -> str:
    return repr(key) if isinstance(key, (str, bytes, *NUMBERS)) else f"{type(key).__name__} {position}"


def as_tensor(value: Any) -> torch.Tensor | None:
    """Return a tensor unchanged, a numeric numpy array as a tensor, and None for anything else."""
    if isinstance(value, torch.Tensor):
        return value
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray) and value.dtype.kind in "biufc":
        return torch.from_numpy(value.copy())
    return None


def same_plain(one: Any, other: Any, rtol: float, atol: float) -> bool | None:
    """Return True if two values that are not tensors are the same; None if their type has no comparison."""
    if type(one) is not type(other):
        return False
    if isinstance(one, (float, complex)):
        if one != one or other != other:
            return (one != one) and (other != other)
        return one == other or bool(
            math.isfinite(abs(other)) and abs(one - other) <= atol + rtol * abs(other)
        )
    if isinstance(one, (set, frozenset)) and not all(isinstance(v, ATOMS) for v in one):
        return None
    if (
        isinstance(one, (types.FunctionType, types.MethodType))
        or getattr(type(one), "__eq__", None) is object.__eq__
    ):
        return True if one is other else None
    try:
        return bool(one == other)
    except Exception:  # a user's own comparison may raise anything
        return None


def leaves(tree: Any) -> list[Any]:
    """Return the leaves of a pytree in order."""
    return list(_pytree.tree_leaves(tree))


def tensors(tree: Any) -> list[torch.Tensor]:
    """Return the tensors in a pytree in order."""
    kind = type(tree)
    if kind in _EMPTY:
        return []
    if kind is tuple or kind is list:  # the usual case, without the cost of the general one
        return [x for part in tree if type(part) not in _EMPTY for x in tensors(part)]
    if isinstance(tree, torch.Tensor) and kind not in _pytree.SUPPORTED_NODES:
        return [tree]
    return [x for x in leaves(tree) if isinstance(x, torch.Tensor)]


_EMPTY = frozenset((int, float, bool, str, type(None), torch.dtype, torch.device, torch.layout))
"""Types of values that contain no tensor."""


def flatten(tree: Any) -> tuple[list[Any], Any]:
    """Return the leaves of a pytree, and the spec for ``unflatten``."""
    items, spec = _pytree.tree_flatten(tree)
    return list(items), spec


def unflatten(items: list[Any], spec: Any) -> Any:
    """Return the pytree that ``flatten`` took apart."""
    return _pytree.tree_unflatten(items, spec)


def map_leaves(function: Callable[[Any], Any], tree: Any) -> Any:
    """Return the pytree with ``function`` applied to each leaf."""
    return _pytree.tree_map(function, tree)


def children(value: Any) -> list[tuple[str, Any]] | None:
    """Return the children of a registered pytree node, each with its access step; None for other values."""
    node = _pytree.SUPPORTED_NODES.get(type(value))
    if node is None:
        return None
    with_keys = getattr(node, "flatten_with_keys_fn", None)
    if with_keys is not None:
        try:
            return [(str(key), child) for key, child in with_keys(value)[0]]
        except Exception:  # registered without keys, or with a faulty function
            return [("", child) for child in node.flatten_fn(value)[0]]
    return [("", child) for child in node.flatten_fn(value)[0]]
