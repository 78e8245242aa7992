"""A program's registration with torch, on its way to another process.

For one that cannot be sent, a stand-in in the other process notes whether the program's compile looks it up, and
changes nothing; a warning about an unused registration would be a false alarm.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch

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


_requested: set[str] = set()


def requested() -> list[str]:
    """Return the registrations that torch looked up since the last call here, as ``Registration.where``."""
    names = sorted(_requested)
    _requested.clear()
    return names


def watch_entry(given: tuple[str, str, str, Any]) -> Undo:
    """Watch an operator's entry in a table: its place, the table's module and name, and the operator."""
    where, module, name, key = given
    held = importlib.import_module(module)
    note = functools.partial(_requested.add, where)
    if name == "decompositions":
        return _note_calls("torch.fx.experimental.proxy_tensor", "", "maybe_handle_decomp", key, note)
    if name == "_maybe_layout_constraints":
        note = functools.partial(_constrained, key, note)
    table = getattr(held, name)
    real = table.get(key)
    if name != "lowerings" or real is None:
        return _note_calls("torch._inductor.graph", "GraphLowering", "call_function", key, note)

    @functools.wraps(real)
    def lowered(*args: Any, **kwargs: Any) -> Any:
        note()
        return real(*args, **kwargs)

    table[key] = lowered
    return lambda: table.__setitem__(key, real)


def _constrained(key: Any, note: Callable[[], None]) -> None:
    """Note a layout constraint; if an operator has a tag for its layout, torch looks up no entry."""
    tag: Any = torch._library.utils.get_layout_constraint_tag
    if not tag(key, with_default=False):
        note()


def watch_function(given: tuple[str, Any]) -> Undo:
    """Watch a function that Dynamo is to trace as another: noted when Dynamo wraps the function for tracing."""
    where, original = given
    builder = "torch._dynamo.variables.builder"
    note = functools.partial(_requested.add, where)
    undo = [
        _note_calls(builder, "VariableBuilder", "__call__", original, note),
        _note_calls(builder, "SourcelessBuilder", "create", original, note),
    ]
    return lambda: [one() for one in undo]


def _note_calls(module: str, kind: str, name: str, key: Any, note: Callable[[], None]) -> Undo:
    """Note when torch's function, which takes an operator after its first argument, gets this one."""
    owner: Any = importlib.import_module(module)
    owner = getattr(owner, kind) if kind else owner
    held, real = vars(owner)[name], getattr(owner, name)

    @functools.wraps(real)
    def noting(first: Any, operator: Any, *args: Any, **kwargs: Any) -> Any:
        if operator is key and not _for_a_pattern():
            note()
        return real(first, operator, *args, **kwargs)

    setattr(owner, name, staticmethod(noting) if isinstance(held, staticmethod) else noting)
    return lambda: setattr(owner, name, held)


def _for_a_pattern() -> bool:
    """Return True if torch traces a pattern, and not a graph."""
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_name in ("register_replacement", "gen_pattern_and_search_gm"):
            return True
        frame = frame.f_back
    return False


def watch_pattern(given: tuple[str, list[tuple[tuple[str, str, Any], Any, int]]]) -> Undo:
    """Watch a pattern in each pass that has it: noted when a graph has the operator at its end."""
    where, at = given
    return insert_pattern((_PatternStandIn(where), at))


def insert_pattern(given: tuple[Any, list[tuple[tuple[str, str, Any], Any, int]]]) -> Undo:
    """Insert a pattern in each pass that has it: by the pass, its key and its position."""
    entry, at = given
    undo: list[Undo] = []
    for (module, name, place), key, position in at:
        passes = getattr(importlib.import_module(module), name)
        patterns = (passes if place is None else passes[place]).patterns[key]
        patterns.insert(position, entry)
        undo.append(functools.partial(_remove, patterns, entry))
    return lambda: [one() for one in undo]


def _remove(patterns: list[Any], entry: Any) -> None:
    patterns[:] = [one for one in patterns if one is not entry]


class _PatternStandIn:
    """Stands for a pattern in a pass, and matches nothing."""

    def __init__(self, where: str) -> None:
        self._where = where
        self.pattern = self

    def match(self, node: Any) -> Any:
        _requested.add(self._where)
        matcher: Any = importlib.import_module("torch._inductor.pattern_matcher")
        return matcher.FailedMatch("only watched")
