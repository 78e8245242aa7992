"""Captures of one test or one check, and a page of each."""

from __future__ import annotations

import functools
import hashlib
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
