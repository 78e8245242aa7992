"""Cells of a notebook by their number, in place of the file that a kernel makes up for each, which never exists."""

from __future__ import annotations

import dataclasses
import os
import re
import sys
from typing import Any, TypeVar

_T = TypeVar("_T")

_OF_KERNEL = re.compile(r"[/\\]ipykernel_\d+[/\\][^/\\]+\.py$")
_OF_TERMINAL = re.compile(r"<ipython-input-(\d+)-\w+>$")
_NUMBER = re.compile(r"In\[(\d+)\]$")


def is_cell(file: str) -> bool:
    """Return True for a file name that IPython made up for a cell: ``/tmp/ipykernel_71/4178438228.py``, ``<ipython-
    input-3-…>``."""
    return _OF_KERNEL.search(file) is not None or _OF_TERMINAL.match(file) is not None


def number(file: str) -> int | None:
    """The number that stands before a cell, ``In [3]``; ``None`` where this process does not know it."""
    terminal = _OF_TERMINAL.match(file)
    if terminal is not None:
        return int(terminal[1])
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    named = getattr(getattr(shell, "compile", None), "format_code_name", None)  # IPython 8.0 and later
    numbered = _NUMBER.match((named(file) or ("", ""))[1]) if named is not None else None
    return int(numbered[1]) if numbered is not None else None


def cell_name(file: str) -> str:
    """Return the name of a cell: ``cell [3]``, or ``a notebook cell`` where its number is not known."""
    known = number(file)
    return "a notebook cell" if known is None else f"cell [{known}]"


def shown(file: str) -> str:
    """The name of a file without its folder, of a cell what it is called."""
    return cell_name(file) if is_cell(file) else os.path.basename(file)


def in_cells(record: _T) -> _T:
    """A record in which files of cells are called by their cells, wherever a field ``file`` names one.

    Two cells never share a name: the second of those whose number is not known, or is that of another, has that of its
    file behind it.
    """
    return record if "IPython" not in sys.modules else _Names().of(record)


class _Names:
    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._taken: set[str] = set()
        self._made: dict[int, tuple[Any, Any]] = {}

    def name(self, file: str) -> str:
        if file not in self._names:
            name = cell_name(file) if is_cell(file) else file
            if name != file and name in self._taken:
                name += f" ({os.path.splitext(os.path.basename(file))[0]})"
            self._names[file] = name
            self._taken.add(name)
        return self._names[file]

    def of(self, value: Any) -> Any:
        """The value; itself where nothing in it is renamed."""
        if not isinstance(value, tuple) and (isinstance(value, type) or not dataclasses.is_dataclass(value)):
            return value
        # Frames are shared by nodes. The value is kept, so that its id stays its own.
        if id(value) not in self._made:
            self._made[id(value)] = (value, self._renamed(value))
        return self._made[id(value)][1]

    def _renamed(self, value: Any) -> Any:
        if isinstance(value, tuple):
            parts = tuple(map(self.of, value))
            same = all(a is b for a, b in zip(parts, value, strict=True))
            return value if same else type(value)(*parts) if hasattr(value, "_fields") else parts
        changed = {}
        for field in dataclasses.fields(value):
            old = getattr(value, field.name)
            new = self.name(old) if field.name == "file" and isinstance(old, str) else self.of(old)
            if field.init and new is not old and new != old:
                changed[field.name] = new
        return dataclasses.replace(value, **changed) if changed else value
