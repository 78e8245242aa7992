"""Exceptions of the child as data: rebuilt in the caller with their own class if it is loaded there, else as a
``RuntimeError`` with the same message.

They are rebuilt without ``__init__``, which may take other arguments than ``args``.
"""

from __future__ import annotations

import base64
import pickle
import sys
import traceback
from typing import Any

MAX_CAUSES = 8
"""Longest chain of causes that is sent."""


def pack(error: BaseException, left: int = MAX_CAUSES) -> dict[str, Any]:
    """Return an exception as JSON data, with at most ``left`` of its causes."""
    kind = type(error)
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return {
        "module": kind.__module__,
        "name": kind.__qualname__,
        "text": _error_text(error),
        "args": [_value(value) for value in error.args],
        "attributes": {name: _value(value) for name, value in vars(error).items()},
        "traceback": "".join(traceback.format_tb(error.__traceback__)),
        "explicit": error.__cause__ is not None,
        "suppressed": error.__suppress_context__,
        "cause": pack(cause, left - 1) if cause is not None and left else None,
    }


def unpack(data: dict[str, Any]) -> BaseException:
    """Return the exception with its cause, and the child's traceback as a note."""
    error = _same_class(data) or RuntimeError(f"{data['name'].rpartition('.')[2]}: {data['text']}")
    if data["traceback"] and hasattr(error, "add_note"):
        error.add_note(f"In the child process:\n{data['traceback'].rstrip()}")
    cause = unpack(data["cause"]) if data["cause"] is not None else None
    if data["explicit"]:
        error.__cause__ = cause
    else:
        error.__context__, error.__suppress_context__ = cause, data["suppressed"]
    return error


def _same_class(data: dict[str, Any]) -> BaseException | None:
    """Return an exception of the same class, arguments and attributes; None if its message would differ."""
    kind: Any = sys.modules.get(data["module"])
    for part in data["name"].split("."):
        kind = getattr(kind, part, None)
    if not (isinstance(kind, type) and issubclass(kind, BaseException)):
        return None
    try:
        args = tuple(_read(value) for value in data["args"])
        error: BaseException = kind.__new__(kind, *args)
        error.args = args
        for name, value in data["attributes"].items():
            if value is not None:
                vars(error)[name] = _read(value)
    except Exception:  # a class with its own way to create instances
        return None
    return error if _error_text(error) == data["text"] else None


def _error_text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # a ``__str__`` that needs a missing attribute
        return f"<{type(error).__name__} that cannot be printed>"


def _value(value: Any) -> str | None:
    """Return the value pickled, in base64; None if it cannot be pickled and loaded."""
    try:
        data = pickle.dumps(value)
        pickle.loads(data)
    except Exception:  # unpicklable objects raise errors of any type
        return None
    return base64.b64encode(data).decode()


def _read(value: str | None) -> Any:
    if value is None:
        raise ValueError("it did not cross")
    return pickle.loads(base64.b64decode(value))
