"""Checks of the names, expressions and paths that an agent sends, before anything is run or written."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...errors import UsageError

MAX_NAME_LENGTH = 1_000
"""Maximum length of a name, a path or an address."""

MAX_EXPRESSION_LENGTH = 10_000
"""Maximum length of one expression."""

MAX_ARGUMENTS = 64
"""Maximum arguments of one call."""

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_CONTROL_BUT_LINES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


def name(text: str, what: str) -> str:
    """Return a name unchanged. Raises ``UsageError`` if it is empty, too long, an option, or has control characters."""
    _check(text, what, MAX_NAME_LENGTH, _CONTROL)
    if text.startswith("-"):
        raise UsageError(f"{what} {text!r} begins with a dash, as an option does; write ./{text} for a file")
    return text


def expression(text: str, what: str) -> str:
    """Return an expression unchanged. Raises ``UsageError`` if it is empty, too long, or has control characters."""
    _check(text, what, MAX_EXPRESSION_LENGTH, _CONTROL_BUT_LINES)
    return text


def _check(text: str, what: str, most: int, control: re.Pattern[str]) -> None:
    if not text.strip() or len(text) > most:
        raise UsageError(f"{what} has {len(text):,} characters; give 1 to {most:,} that are not all spaces")
    bad = control.search(text)
    if bad is not None:
        raise UsageError(f"{what} has the control character U+{ord(bad.group()):04X}; give it without")


def inside(path: str, folder: Path, what: str) -> Path:
    """Return a path in the folder, with links resolved. Raises ``UsageError`` if it leads outside."""
    full = (folder / name(path, what)).resolve()
    if not full.is_relative_to(folder):
        raise UsageError(
            f"{what} {path!r} is outside of the folder that this server works in ({folder}); give a path in it, or "
            "start the server there: compile-lens mcp FOLDER"
        )
    return full


def function(text: str, folder: Path) -> str:
    """Return ``file.py:function`` or ``module:function`` unchanged after checking it.

    Raises:
        UsageError: the file is outside the folder, the module's name is invalid, or no function is named.
    """
    name(text, "function")
    place, separator, expr = text.partition(".py:")
    if separator:
        inside(f"{place}.py", folder, "function")
    else:
        place, separator, expr = text.partition(":")
        module(place)
    if not expr.strip():
        raise UsageError(
            f"function {text!r} names none: give path/to/file.py:function or package.module:function"
        )
    return text


def module(text: str) -> str:
    """Return the name of a module unchanged. Raises ``UsageError`` if it is not a valid one."""
    if not _MODULE.fullmatch(name(text, "module")):
        raise UsageError(f"{text!r} names no module; give path/to/file.py or package.module")
    return text


def address(text: str, what: str) -> str | tuple[str, ...]:
    """Return an address unchanged, or as a tuple if it is the text of a tuple of three, as messages print it."""
    name(text, what)
    parts = re.findall(r"'([^']*)'", text) if text.startswith("(") else []
    return tuple(parts) if len(parts) == 3 else text


def call(function_text: str, inputs: Sequence[str], kwargs: Mapping[str, str], folder: Path) -> list[str]:
    """Return a call as words of a command line. Raises ``UsageError`` if a part of it is invalid."""
    words = [function(function_text, folder)]
    if len(inputs) + len(kwargs) > MAX_ARGUMENTS:
        raise UsageError(f"{len(inputs) + len(kwargs)} arguments were given; give at most {MAX_ARGUMENTS}")
    words += [f"--input={expression(text, f'input {number}')}" for number, text in enumerate(inputs, 1)]
    for key, text in kwargs.items():
        if not key.isidentifier():
            raise UsageError(f"keyword {key!r} is not a name")
        words.append(f"--kwarg={key}={expression(text, f'keyword {key}')}")
    return words
