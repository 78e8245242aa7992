"""Names in a function's code through which it may reach objects of the program."""

from __future__ import annotations

import dis
import types
import weakref
from collections.abc import Iterator

_DYNAMIC = frozenset(("getattr", "vars", "dir"))
"""Builtins that look up names which do not occur in the code."""


def codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yield a code object and those nested in it."""
    yield code
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from codes(inner)


_cache: weakref.WeakKeyDictionary[types.CodeType, tuple[set[str], ...]] = weakref.WeakKeyDictionary()


def names_in(code: types.CodeType) -> tuple[set[str], ...]:
    """Return four sets: all names in the code, its globals, the modules that it imports, and the globals that it
    searches by a computed name (``getattr(module, name)``)."""
    entry = _cache.get(code)
    if entry is None:
        names: set[str] = set()
        used: set[str] = set()
        imported: set[str] = set()
        owners: set[str] = set()
        for inner in codes(code):
            names.update(inner.co_names)
            for constant in inner.co_consts:
                if (
                    isinstance(constant, str)
                    and len(constant) < 100
                    and constant.replace(".", "").isidentifier()
                ):
                    names.update(constant.split("."))
                    imported.add(constant)  # importlib.import_module("mine")
            previous, last = "", ""  # globals that the last two instructions loaded
            for step in dis.get_instructions(inner):
                if step.opname in ("PUSH_NULL", "EXTENDED_ARG", "CACHE"):
                    continue
                if previous in _DYNAMIC and last and step.opname not in ("LOAD_ATTR", "LOAD_METHOD"):
                    owners.add(last)
                if last and step.argval == "__dict__":
                    owners.add(last)
                previous, last = last, ""
                if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                    used.add(step.argval)
                    last = step.argval
                if step.opname == "IMPORT_NAME":
                    imported.add(step.argval)
        entry = _cache[code] = names, used, imported, owners
    return entry
