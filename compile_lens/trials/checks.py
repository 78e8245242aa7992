"""Checks without pytest: each function of a file of expectations is one. Also the pages of the captures that a test or
a check makes."""

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
        file, name: its file, and the name of its function.
        line: the line that failed or raised; else the first line of the function.
        outcome: ``held``; ``failed``, if an expectation was not met; ``raised``, on another error.
        text: the finding, its reason and a suggestion; for another error its type and message; ``""`` if the check
            held.
        seconds: measured duration.
        pages: a line for each saved page.
    """

    file: str
    name: str
    line: int
    outcome: str
    text: str = ""
    seconds: float = 0.0
    pages: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as plain JSON data."""
        return asdict(self)


def checks(module: ModuleType, file: str, only: Sequence[str] = ()) -> list[Callable[..., object]]:
    """Return the checks of a module in source order; with ``only`` those with the given names.

    Raises:
        UsageError: there is no check, or none of such a name, or a check takes a parameter other than ``compile_lens``.
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
    # A test that needs pytest does not prevent others from being run by name.
    wanted: list[Callable[..., object]] = [f for f in functions if not only or f.__name__ in only]
    for function in wanted:
        for name in _required_parameters(function):
            if name != "compile_lens":
                raise UsageError(
                    f"{file}: {function.__name__} takes {name!r}, and a check is called with nothing but "
                    "compile_lens: fixtures and parameters are pytest's; run this file with pytest"
                )
    return wanted


def run_check(function: Callable[..., object], file: str, folder: Path | None = None) -> Checked:
    """Run one check. If it does not hold, save a page in ``folder`` for each capture that it made through its
    ``compile_lens`` argument and for the one in its error."""
    lens = Lens()
    start = time.perf_counter()
    raised: Exception | None = None
    try:
        function(**{name: lens for name in _required_parameters(function)})
    except Exception as error:
        raised = error
    seconds = time.perf_counter() - start
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


def _required_parameters(function: Callable[..., object]) -> list[str]:
    """Return the names of the parameters without a default."""
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    return [p.name for p in parameters if p.default is p.empty and p.kind not in kinds]


if TYPE_CHECKING:
    from ..results.capture import Capture

MAX_PAGES = 8
"""Maximum number of pages saved for one test."""

MAX_NAME_LENGTH = 120
"""Maximum length of a test's name in the file name of its page."""


class Lens:
    """The ``compile_lens`` argument of one test: the package, with its captures recorded.

    ``--compile-lens-report`` saves pages of the captures that a test makes through this object.
    """

    def __init__(self) -> None:
        self._captures: dict[int, Capture] = {}

    def __getattr__(self, name: str) -> Any:
        __tracebackhide__ = True
        # The package is above this folder, so it is not imported; it is already loaded.
        value = getattr(sys.modules[__name__.partition(".")[0]], name)
        if isinstance(value, type) or not callable(value):
            return value

        @functools.wraps(value)
        def called(*args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            result = value(*args, **kwargs)
            self._keep(result)
            return result

        return called

    def _keep(self, made: Any) -> None:
        capture = _capture(made)
        if capture is not None:
            self._captures[id(capture)] = capture

    def captures(self, raised: object = None) -> list[Capture]:
        """Return the captures that were made and the one in ``raised``, without duplicates."""
        seen = dict(self._captures)
        last = _capture(raised)
        if last is not None:
            seen[id(last)] = last
        return list(seen.values())


def _capture(thing: Any) -> Capture | None:
    """Return the capture that an object of this package is or refers to; None for others. Decided by class name,
    without an import of ``results``."""
    if any((kind.__module__, kind.__name__) == _CAPTURE_CLASS for kind in type(thing).__mro__):
        capture: Capture = thing
        return capture
    ours = any(kind.__module__.partition(".")[0] == "compile_lens" for kind in type(thing).__mro__)
    return _capture(getattr(thing, "capture", None)) if ours else None


_CAPTURE_CLASS = ("compile_lens.results.capture", "Capture")


def pages(captures: list[Capture], folder: Path, test: str) -> list[str]:
    """Save the pages of a test and return a line for each, also for a page that could not be written."""
    lines = []
    plain = re.sub(r"\W+", "-", test.rpartition("/")[2]).strip("-")[:MAX_NAME_LENGTH]
    # Different tests may get the same ``plain`` name.
    mark = hashlib.sha256(test.encode("utf-8", "surrogatepass")).hexdigest()[:6]
    for number, capture in enumerate(captures[:MAX_PAGES], 1):
        path = folder / f"{plain}-{mark}{f'-{number}' if len(captures) > 1 else ''}.html"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            capture.save(path)
        except Exception as error:
            lines.append(f"no page of {capture.function}: {type(error).__name__}: {error}")
        else:
            lines.append(f"page of {capture.function}: {path}")
    if len(captures) > MAX_PAGES:
        lines.append(f"{len(captures) - MAX_PAGES} more captures have no page")
    return lines
