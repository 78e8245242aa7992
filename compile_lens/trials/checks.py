"""A file of expectations, held without pytest: each function of it is a check."""

from __future__ import annotations

import inspect
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from ..errors import UsageError
from .lens import Lens, pages

PREFIXES = ("check", "test")
"""Prefixes of the names of functions that are checks."""

HELD, FAILED, RAISED = "held", "failed", "raised"
"""Values of ``Checked.outcome``."""


@dataclass(frozen=True)
class Checked:
    """Outcome of one check.

    Attributes:
        file, name: where it stands, and the function's name.
        line: the line of the file that did not hold, or raised; else the first of the function.
        outcome: ``held``; ``failed``, where what was expected is not so; ``raised``, where something else went
            wrong.
        text: what was found, why, and what to try; of another error its type and message; ``""`` where it held.
        seconds: how long it took, measured.
        pages: a line for each page that was kept of it.
    """

    file: str
    name: str
    line: int
    outcome: str
    text: str = ""
    seconds: float = 0.0
    pages: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON data."""
        return asdict(self)


def checks(module: ModuleType, file: str, only: Sequence[str] = ()) -> list[Callable[..., object]]:
    """The checks of a module, in the order of its lines; ``only`` those whose names are given.

    Raises:
        UsageError: there is none, none of such a name, or one of those takes what only pytest could give it.
    """
    own = [f for f in vars(module).values() if inspect.isfunction(f) and f.__module__ == module.__name__]
    functions = list(dict.fromkeys(f for f in own if f.__name__.startswith(PREFIXES)))
    if not functions:
        raise UsageError(
            f"{file} has no check: write functions whose names begin with check or test, such as "
            "def check_launches(): compile_lens.expect(f, x).launches(1)"
        )
    names = [f.__name__ for f in functions]
    for name in only:
        if name not in names:
            raise UsageError(f"{file} has no check {name!r}; it has {', '.join(names)}")
    # What only pytest can call is no hindrance to the others, where those are asked for by their names.
    wanted: list[Callable[..., object]] = [f for f in functions if not only or f.__name__ in only]
    for function in wanted:
        for name in _needed(function):
            if name != "compile_lens":
                raise UsageError(
                    f"{file}: {function.__name__} takes {name!r}, and a check is called with nothing but "
                    "compile_lens: fixtures and parameters are pytest's; run this file with it"
                )
    return wanted


def held(function: Callable[..., object], file: str, folder: Path | None = None) -> Checked:
    """Run one check; where it does not hold, ``folder`` gets a page of each capture that it made with what it was
    given, or failed about."""
    lens = Lens()
    began = time.perf_counter()
    raised: Exception | None = None
    try:
        function(**{name: lens for name in _needed(function)})
    except Exception as error:
        raised = error
    seconds = time.perf_counter() - began
    place = function.__code__
    if raised is None:
        return Checked(file, function.__name__, place.co_firstlineno, HELD, seconds=seconds)
    frames = [f for f in traceback.extract_tb(raised.__traceback__) if f.filename == place.co_filename]
    line = (frames[-1].lineno if frames else None) or place.co_firstlineno
    expected = isinstance(raised, AssertionError)
    text = str(raised).rstrip() if expected else f"{type(raised).__name__}: {raised}".rstrip()
    if expected and not text:
        text = f"not so: {frames[-1].line}" if frames else "an assertion failed without a word"
    kept = () if folder is None else pages(lens.captures(raised), folder, f"{file}::{function.__name__}")
    outcome = FAILED if expected else RAISED
    return Checked(file, function.__name__, line, outcome, text, seconds, tuple(kept))


def _needed(function: Callable[..., object]) -> list[str]:
    """Its parameters without a value of their own."""
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    return [p.name for p in parameters if p.default is p.empty and p.kind not in kinds]
