"""A program's registration with torch, on its way to another process."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

Undo = Callable[[], Any]


@dataclasses.dataclass(frozen=True)
class Registration:
    """One registration with torch.

    Attributes:
        where: its name, as a reader would write it.
        kind: what it is, in words.
        put: registers it in the other process, given ``value``, and returns how to undo that.
        value: the argument of ``put``.
        by: the program's function that was registered; None if there is none.
        of: the object that must be reached for it to matter; None if it always does.
        watch: if this cannot be sent, notes in the other process whether it matters, with its argument;
            None if it always does.
    """

    where: str
    kind: str
    put: Callable[[Any], Undo]
    value: Any
    by: Any
    of: Any = None
    watch: tuple[Callable[[Any], Undo], Any] | None = None


def function_in(value: Any) -> types.FunctionType | None:
    """Return the Python function that is called; None if there is none."""
    while isinstance(value, functools.partial):
        value = value.func
    if not callable(value):
        return None
    value = inspect.unwrap(value)
    value = getattr(value, "__func__", value)
    if not isinstance(value, (types.FunctionType, type)):
        value = getattr(type(value), "__call__", None)  # noqa: B004  # the function, not whether there is one
    return value if isinstance(value, types.FunctionType) else None


def display_name(value: Any) -> str:
    """Return a function's name, as a reader would write it."""
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None) or str(value)
    module = getattr(value, "__module__", None)
    return str(name) if module in (None, "__main__", "builtins") else f"{module}.{name}"


def functions_in(entry: Any) -> Iterator[types.FunctionType]:
    """Yield the Python functions that an object holds, and those in their closures."""
    todo = [*vars(entry).values()]
    seen: set[int] = set()
    while todo:
        function = function_in(todo.pop())
        if function is not None and id(function) not in seen:
            seen.add(id(function))
            yield function
            for cell in function.__closure__ or ():
                todo.append(cell_content(cell))


def cell_content(cell: Any) -> Any:
    """Return the content of a cell; None for an empty one."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def is_torchs(function: Any) -> bool:
    """Return True if a function is torch's or of a package below it; also for other objects, and for code that torch
    generates from text, which is in no module."""
    name = None if function is None else function.__globals__.get("__name__")
    top = str(name).partition(".")[0]
    return name is None or top in _BELOW or (top in sys.stdlib_module_names and top != "__main__")


_BELOW = frozenset("torch torchgen triton numpy sympy mpmath networkx jinja2 compile_lens".split())
