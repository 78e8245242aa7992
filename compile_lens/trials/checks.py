"""A file of expectations, held without pytest: each function of it is a check; and the captures of a test or a check, a
page of each."""

from __future__ import annotations

import functools
import hashlib
import inspect
import re
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..errors import UsageError

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


def run_check(function: Callable[..., object], file: str, folder: Path | None = None) -> Checked:
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


if TYPE_CHECKING:
    from ..results.capture import Capture

MOST = 8
"""Pages of one test."""

NAME = 120
"""Characters of a test's name in the name of its page."""


class Lens:
    """``compile_lens`` for one test: every name of the package, loaded when it is asked for.

    The captures that a test makes with it are those of which ``--compile-lens-report`` keeps pages.
    """

    def __init__(self) -> None:
        self._seen: dict[int, Capture] = {}

    def __getattr__(self, name: str) -> Any:
        __tracebackhide__ = True
        # The package itself stands above this room, and is there: this file is of it.
        value = getattr(sys.modules[__name__.partition(".")[0]], name)
        if isinstance(value, type) or not callable(value):
            return value

        @functools.wraps(value)
        def called(*args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            result = value(*args, **kwargs)
            self._see(result)
            return result

        return called

    def _see(self, made: Any) -> None:
        capture = _capture(made)
        if capture is not None:
            self._seen[id(capture)] = capture

    def captures(self, raised: object = None) -> list[Capture]:
        """The captures that were made, and that of what was raised, each once."""
        seen = dict(self._seen)
        last = _capture(raised)
        if last is not None:
            seen[id(last)] = last
        return list(seen.values())


def _capture(thing: Any) -> Capture | None:
    """The capture that something of compile_lens's is, or is about; asked without importing what tells them."""
    if any((kind.__module__, kind.__name__) == _HOME for kind in type(thing).__mro__):
        capture: Capture = thing
        return capture
    ours = any(kind.__module__.partition(".")[0] == "compile_lens" for kind in type(thing).__mro__)
    return _capture(getattr(thing, "capture", None)) if ours else None


_HOME = ("compile_lens.results.capture", "Capture")


def pages(captures: list[Capture], folder: Path, test: str) -> list[str]:
    """Writes the pages of a test. A page that cannot be written is told, and fails nothing else."""
    lines = []
    plain = re.sub(r"\W+", "-", test.rpartition("/")[2]).strip("-")[:NAME]
    mark = hashlib.sha256(test.encode("utf-8", "surrogatepass")).hexdigest()[:6]  # names that become the same
    for number, capture in enumerate(captures[:MOST], 1):
        path = folder / f"{plain}-{mark}{f'-{number}' if len(captures) > 1 else ''}.html"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            capture.save(path)
        except Exception as error:
            lines.append(f"no page of {capture.function}: {type(error).__name__}: {error}")
        else:
            lines.append(f"page of {capture.function}: {path}")
    if len(captures) > MOST:
        lines.append(f"{len(captures) - MOST} captures more have no page")
    return lines
