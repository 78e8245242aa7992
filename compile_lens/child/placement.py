"""Changes that make the child's modules match the caller's where the program changed them after import.

All changes are undone after the reply, so that the next request finds the modules as imported.
"""

from __future__ import annotations

import functools
import importlib
import linecache
import marshal
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch

_undo_steps: list[Callable[[], Any]] = []
_before: dict[tuple[int, str], Any] = {}
_created: list[types.FunctionType] = []
NOTHING: Any = object()


TORCH_NAMESPACES = (torch, torch.nn.functional, torch.Tensor, torch.nn.Module)
"""Torch's namespaces in which programs replace functions."""

_torch_contents: list[tuple[Any, dict[str, Any]]] = []


def _of_torch(function: types.FunctionType) -> bool:
    name = str(function.__globals__.get("__name__"))
    return name.partition(".")[0] in ("torch", "compile_lens")


def is_disabled(value: Any) -> bool:
    """Return True for a library function that the program disabled and put back (``F.silu =
    torch.compiler.disable(F.silu)``), False for one that its own module disabled."""
    held = vars(value) if isinstance(value, types.FunctionType) else {}
    inside = held.get("_torchdynamo_orig_callable")
    if held.get("_torchdynamo_wrapper_id") != id(value) or not isinstance(inside, types.FunctionType):
        return False
    code = inside.__code__
    for number in range(code.co_firstlineno, code.co_firstlineno + 20):  # decorators precede the ``def``
        line = linecache.getline(code.co_filename, number).lstrip()
        if not line or line.startswith(("def ", "async def ")):
            break
        if "disable" in line:
            return False
    return True


class Differs(Exception):
    """The function at this name differs from the caller's, which is a library's wrapper and cannot be rebuilt without
    its closure."""


def begin() -> None:
    """Save the contents of torch's namespaces, which importing the program's modules may change."""
    _torch_contents[:] = [(owner, dict(vars(owner))) for owner in TORCH_NAMESPACES]


def restore() -> None:
    """Undo all changes of the request."""
    while _undo_steps:
        _undo_steps.pop()()
    for owner, before in _torch_contents:
        for name, held in list(vars(owner).items()):
            old = before.get(name, NOTHING)
            if held is not old and isinstance(held, types.FunctionType) and not _of_torch(held):
                delattr(owner, name) if old is NOTHING else setattr(owner, name, old)
    _torch_contents.clear()
    _before.clear()
    _created.clear()


def check() -> None:
    """Raise ``ImportError`` if a function created here lacks a variable of its closure."""
    for one in _created:
        for name, cell in zip(one.__code__.co_freevars, one.__closure__ or ()):
            if contents(cell) is NOTHING:
                where = f"{one.__module__}.{one.__qualname__}"
                raise ImportError(f"{name}, over which {where} closes, did not cross")


def contents(cell: types.CellType) -> Any:
    """Return the content of a cell; ``NOTHING`` if it is empty."""
    try:
        return cell.cell_contents
    except ValueError:
        return NOTHING


def value(module: str, name: str, held: Any) -> None:
    """Set a global of a module."""
    _set(vars(importlib.import_module(module)), name, held)


def absent(module: str, name: str) -> None:
    """Delete a global that the caller's module no longer has."""
    space = vars(importlib.import_module(module))
    old = space.get(name, NOTHING)
    if old is not NOTHING and not isinstance(old, types.ModuleType):
        _before.setdefault((id(space), name), old)
        del space[name]
        _undo_steps.append(lambda: space.__setitem__(name, old))


def _set(space: dict[str, Any], name: str, held: Any) -> None:
    old = space.get(name, NOTHING)
    if old is held:
        return
    _before.setdefault((id(space), name), old)
    space[name] = held
    _undo_steps.append(lambda: space.pop(name, None) if old is NOTHING else space.__setitem__(name, old))


def attribute(owner: Any, name: str, held: Any) -> None:
    """Set an attribute of a class or of a function."""
    if isinstance(owner, type):
        old = vars(owner).get(name, NOTHING)
        if old is held or _same(old, held):
            return
        _before.setdefault((id(owner), name), old)
        type.__setattr__(owner, name, held)
        _undo_steps.append(
            lambda: type.__delattr__(owner, name) if old is NOTHING else type.__setattr__(owner, name, old)
        )
        return
    old = getattr(owner, name, NOTHING)
    setattr(owner, name, held)
    _undo_steps.append(lambda: delattr(owner, name) if old is NOTHING else setattr(owner, name, old))


def _same(old: Any, held: Any) -> bool:
    """Return True if two descriptors of one type wrap the same functions."""
    if type(old) is not type(held) or not isinstance(held, (staticmethod, classmethod, property)):
        return False
    names = ("fget", "fset", "fdel") if isinstance(held, property) else ("__func__",)
    return all(getattr(old, name) is getattr(held, name) for name in names)


def registered(put: Callable[[Any], Callable[[], Any]], held: Any) -> None:
    """Register something with torch: ``put`` registers it and returns a function that undoes this."""
    _undo_steps.append(put(held))


def closed(owner: types.FunctionType, name: str, held: Any) -> None:
    """Set a variable of a function's closure."""
    cell = (owner.__closure__ or ())[owner.__code__.co_freevars.index(name)]
    old = contents(cell)
    if old is NOTHING:
        cell.cell_contents = held
        return
    if old is not held:
        cell.cell_contents = held
        _undo_steps.append(lambda: setattr(cell, "cell_contents", old))


def fields(owner: Any, held: dict[str, Any]) -> None:
    """Set the fields of an object that has a name in an installed package."""
    space = vars(owner)
    for name in [*space]:
        if name not in held:
            absent_here = space.pop(name)
            _undo_steps.append(lambda name=name, old=absent_here: space.__setitem__(name, old))  # type: ignore[misc]
    for name, one in held.items():
        _set(space, name, one)


def function(module: str, path: str, data: bytes, ours: bool) -> Any:
    """Return the function at this name, or a new one with the caller's code if the code there differs.

    Raises ``Differs`` if the code differs and is a library wrapper's (``ours`` is False), which is useless without its
    closure.
    """
    code = marshal.loads(data)
    place = importlib.import_module(module)
    for one in functions_in(at(place, path, _before)):
        if one.__code__ == code:
            return one
    if not ours:
        raise Differs(f"{module}:{path}")
    cells = tuple(types.CellType() for _ in code.co_freevars)
    created = types.FunctionType(code, vars(place), code.co_name, None, cells or None)
    created.__module__, created.__qualname__ = module, path
    _created.append(created)
    return created


def named(module: str, path: str) -> Any:
    """Return the object at a dotted path in a module."""
    value: Any = importlib.import_module(module)
    for name in path.split("."):
        value = getattr(value, name)
    return value


def at(module: Any, path: str, before: dict[tuple[int, str], Any] | None = None) -> Any:
    """Return the object at a dotted path in a module; None if there is none. ``before`` maps replaced objects to their
    originals."""
    value = module
    for name in path.split("."):
        if not isinstance(value, (types.ModuleType, type)):
            return None
        key = (id(vars(value)) if isinstance(value, types.ModuleType) else id(value), name)
        value = before[key] if before and key in before else vars(value).get(name)
    return value


def functions_in(value: Any) -> Iterator[types.FunctionType]:
    """Yield the Python functions in a callable or descriptor, including those that it wraps."""
    todo: list[Any] = [value]
    seen: set[int] = set()
    while todo and len(seen) < 64:
        one = todo.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, types.FunctionType):
            yield one
            todo += [vars(one).get("__wrapped__"), vars(one).get("_torchdynamo_orig_callable")]
            for cell in one.__closure__ or ():
                inside = contents(cell)
                if isinstance(inside, (types.FunctionType, types.MethodType)):
                    todo.append(inside)
        elif isinstance(one, (staticmethod, classmethod, types.MethodType)):
            todo.append(one.__func__)
        elif isinstance(one, property):
            todo += [one.fget, one.fset, one.fdel]
        elif isinstance(one, functools.partial):
            todo.append(one.func)
        elif not isinstance(one, (type, types.ModuleType)):
            held = getattr(type(one), "__dict__", {}) and getattr(one, "__dict__", None)
            if type(held) is dict:
                todo += [
                    held.get(name)
                    for name in ("__wrapped__", "func", "fn", "_init_fn")
                    if callable(held.get(name))
                ]
