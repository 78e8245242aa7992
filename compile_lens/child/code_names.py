"""Names in the code of a function, by which it may reach objects of its program."""

from __future__ import annotations

import dis
import types
import weakref
from collections.abc import Iterator

_DYNAMIC = frozenset(("getattr", "vars", "dir"))
"""Builtins by which code may look up a name that is not written in it."""


def codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for one in code.co_consts:
        if isinstance(one, types.CodeType):
            yield from codes(one)


_known: weakref.WeakKeyDictionary[types.CodeType, tuple[set[str], ...]] = weakref.WeakKeyDictionary()


def names_in(code: types.CodeType) -> tuple[set[str], ...]:
    """The names in code, those of them that are globals, the modules that it imports itself, and the globals that
    it asks for what it does not name (``getattr(module, name)``)."""
    entry = _known.get(code)
    if entry is None:
        names: set[str] = set()
        used: set[str] = set()
        imported: set[str] = set()
        owners: set[str] = set()
        for one in codes(code):
            names.update(one.co_names)
            for constant in one.co_consts:
                if (
                    isinstance(constant, str)
                    and len(constant) < 100
                    and constant.replace(".", "").isidentifier()
                ):
                    names.update(constant.split("."))
                    imported.add(constant)  # importlib.import_module("mine")
            before, last = "", ""  # names of globals that were just put on the stack
            for step in dis.get_instructions(one):
                if step.opname in ("PUSH_NULL", "EXTENDED_ARG", "CACHE"):
                    continue
                if before in _DYNAMIC and last and step.opname not in ("LOAD_ATTR", "LOAD_METHOD"):
                    owners.add(last)
                if last and step.argval == "__dict__":
                    owners.add(last)
                before, last = last, ""
                if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                    used.add(step.argval)
                    last = step.argval
                if step.opname == "IMPORT_NAME":
                    imported.add(step.argval)
        entry = _known[code] = names, used, imported, owners
    return entry
