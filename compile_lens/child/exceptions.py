"""An exception on its way to the caller: as it was, where its class is found there, else by its words.

It is made without calling the class, whose ``__init__`` may take other arguments than those that the exception keeps.
"""

from __future__ import annotations

import base64
import pickle
import sys
import traceback
from typing import Any

CAUSES = 8
"""Most errors of a chain of causes that cross."""


def pack(error: BaseException, left: int = CAUSES) -> dict[str, Any]:
    """As plain data."""
    kind = type(error)
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return {
        "module": kind.__module__,
        "name": kind.__qualname__,
        "said": _error_text(error),
        "args": [_value(value) for value in error.args],
        "holds": {name: _value(value) for name, value in vars(error).items()},
        "where": "".join(traceback.format_tb(error.__traceback__)),
        "explicit": error.__cause__ is not None,
        "suppressed": error.__suppress_context__,
        "cause": pack(cause, left - 1) if cause is not None and left else None,
    }


def unpack(data: dict[str, Any]) -> BaseException:
    """It, with its cause, and where it was raised as a note."""
    error = _alike(data) or RuntimeError(f"{data['name'].rpartition('.')[2]}: {data['said']}")
    if data["where"] and hasattr(error, "add_note"):
        error.add_note(f"In the child process:\n{data['where'].rstrip()}")
    cause = unpack(data["cause"]) if data["cause"] is not None else None
    if data["explicit"]:
        error.__cause__ = cause
    else:
        error.__context__, error.__suppress_context__ = cause, data["suppressed"]
    return error


def _alike(data: dict[str, Any]) -> BaseException | None:
    """One of its class, with its arguments and what it holds; ``None`` where it would not say the same."""
    kind: Any = sys.modules.get(data["module"])
    for part in data["name"].split("."):
        kind = getattr(kind, part, None)
    if not (isinstance(kind, type) and issubclass(kind, BaseException)):
        return None
    try:
        args = tuple(_read(value) for value in data["args"])
        error: BaseException = kind.__new__(kind, *args)
        error.args = args
        for name, value in data["holds"].items():
            if value is not None:
                vars(error)[name] = _read(value)
    except Exception:  # a class that makes its exceptions in a way of its own
        return None
    return error if _error_text(error) == data["said"] else None


def _error_text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # a text of the program's that needs what the exception does not have
        return f"<{type(error).__name__} that cannot be printed>"


def _value(value: Any) -> str | None:
    """Pickled; ``None`` for what does not survive that."""
    try:
        data = pickle.dumps(value)
        pickle.loads(data)
    except Exception:  # each object that cannot be pickled has an error of its own for it
        return None
    return base64.b64encode(data).decode()


def _read(value: str | None) -> Any:
    if value is None:
        raise ValueError("it did not cross")
    return pickle.loads(base64.b64decode(value))
