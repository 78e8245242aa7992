"""The text of the program's files, as far as it can be the text that was compiled.

A file is changed after its import, and two programs call their texts by one name (``exec``): then Python and torch
show lines that never ran. A text is compiled here again, and what comes out is compared with the code of a function.
"""

from __future__ import annotations
import __future__

import ast
import functools
import linecache
import operator
import os
import re
import sys
import types
import warnings
import weakref
from collections.abc import Iterable, Iterator, Mapping
from importlib.machinery import SourceFileLoader
from typing import Any

from ...record import syntax

_FUTURE: int = functools.reduce(
    operator.or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)
_MAGIC = re.compile(r"^(\s*)[%!].*", re.MULTILINE)
_TEXTS = 64
"""Files whose codes are kept."""

_Codes = Mapping[str, list[types.CodeType]]
_texts: dict[tuple[str, int], tuple[list[str], _Codes]] = {}  # with the lines that were compiled
_verdicts: dict[int, tuple[weakref.ref[types.CodeType], list[str], bool]] = {}
_foreign: dict[str, dict[tuple[int, str], frozenset[int]]] = {}  # by file and function, the lines of its code


def line(file: str, number: int) -> str:
    """Return a line of a file, with its end; ``""`` if a function with other text was compiled there."""
    return "" if is_foreign(file, number) else linecache.getline(file, number)


def text(file: str, number: int, module: dict[str, Any] | None = None) -> str:
    """Return the text of a file around a line; ``""`` if a function with other text was compiled there."""
    return "" if is_foreign(file, number) else "".join(linecache.getlines(file, module))


def is_foreign(file: str, number: int) -> bool:
    """Return True if the code of a function (``check``) has this line, and not the text that the file has there."""
    return file in _foreign and any(number in lines for lines in _foreign[file].values())


def check(code: types.CodeType) -> bool:
    """Return False if a function was compiled from another text than its file has now; its lines have no text then.

    True where there is no text at all.
    """
    file, key = code.co_filename, id(code)
    lines = linecache.getlines(file)
    if not lines:
        return True
    known = _verdicts.get(key)
    if known is not None and known[0]() is code and known[1] is lines:
        return known[2]
    same = _is_text_of(code, lines) or _has_loader_of_its_own(file)
    if not same:  # what Python read of the file may be older than the file
        linecache.checkcache(file)
        if linecache.getlines(file) is not lines:
            return check(code)
    _verdicts[key] = weakref.ref(code, lambda _: _verdicts.pop(key, None)), lines, same
    place = code.co_firstlineno, code.co_name
    if not same:
        numbers = frozenset(number for _, _, number in code.co_lines() if number)
        _foreign.setdefault(file, {})[place] = numbers
    elif file in _foreign:
        _foreign[file].pop(place, None)
    return same


def _has_loader_of_its_own(file: str) -> bool:
    """Return True if the module of a file was not loaded as Python does, so that its code may have more than its text,
    such as checks of types, or assertions that a test framework rewrote: then nothing shows that the text is another
    one."""
    for module in list(sys.modules.values()):
        own = getattr(module, "__dict__", {})
        if own.get("__file__") == file:
            loader = getattr(own.get("__spec__"), "loader", None)
            return loader is not None and type(loader) is not SourceFileLoader
    return False


def reason(code: types.CodeType) -> str:
    """Return why the lines of a function that fails ``check`` are not shown."""
    file = os.path.basename(code.co_filename)
    return f"some lines of {file} are not shown: its text there is not the one that was compiled"


def _is_text_of(code: types.CodeType, lines: list[str]) -> bool:
    def has(codes: _Codes) -> bool:
        same_name = codes.get(code.co_name, [])
        return any(one == code and _places(one) == _places(code) for one in same_name)

    # IPython compiles each statement of a cell alone: what a call of an imported name becomes depends on that.
    return has(_codes(code, lines)) or has(_compiled_alone("".join(lines), _flags(code)))


def _codes(code: types.CodeType, lines: list[str]) -> _Codes:
    """Return the codes of a text by their names; empty if it is no Python."""
    flags = _flags(code)
    key = code.co_filename, flags
    known = _texts.get(key)
    if known is not None and known[0] is lines:
        return known[1]
    by_name = _by_name([_compiled("".join(lines), flags)])
    if len(_texts) >= _TEXTS:
        _texts.clear()
    _texts[key] = lines, by_name
    return by_name


def _flags(code: types.CodeType) -> int:
    return code.co_flags & _FUTURE | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


def _compiled(text: str | ast.Module, flags: int) -> types.CodeType | None:
    """Return the code of a text, or of its tree; None if it is no Python."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what Python has to say of the text, it said before
        for one in (text, _MAGIC.sub(r"\1pass", text)) if isinstance(text, str) else (text,):
            try:
                code = compile(one, "<text>", "exec", flags, dont_inherit=True)
                return code if isinstance(code, types.CodeType) else None
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                continue
    return None


@functools.lru_cache(maxsize=8)
def _compiled_alone(text: str, flags: int) -> _Codes:
    """Return the codes of the statements of a text, each compiled alone, by their names."""
    try:
        tree = syntax.parse(_MAGIC.sub(r"\1pass", text))
    except (SyntaxError, ValueError):
        return {}
    return _by_name(_compiled(ast.Module([statement], []), flags) for statement in tree.body)


def _by_name(codes: Iterable[types.CodeType | None]) -> _Codes:
    by_name: dict[str, list[types.CodeType]] = {}
    for code in codes:
        for one in _inner(code):
            by_name.setdefault(one.co_name, []).append(one)
    return by_name


def _inner(code: types.CodeType | None) -> Iterator[types.CodeType]:
    if code is not None:
        yield code
        for one in code.co_consts:
            if isinstance(one, types.CodeType):
                yield from _inner(one)


def _places(code: types.CodeType) -> list[Any]:
    positions = getattr(code, "co_positions", None)  # Python 3.10 has none
    return list(code.co_lines() if positions is None else positions())
