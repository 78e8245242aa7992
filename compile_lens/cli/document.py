"""The one JSON document of a program that is run: stdout is its own, and what the program prints goes to stderr."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..results.program import Program


class Document:
    """Stdout, kept for one document: also processes that the program starts write to stderr meanwhile."""

    def __init__(self) -> None:
        self._stdout: int | None = None

    def begin(self) -> None:
        """From now on what is written to stdout goes to stderr."""
        from . import output, programs

        self._words = (programs.summary, output.error_dict)  # not everything can be imported when Python ends
        if sys.stdout is not None:
            sys.stdout.flush()
        with contextlib.suppress(OSError):  # one of them is closed: nobody reads it
            stdout = os.dup(1)
            os.dup2(2, 1)
            self._stdout = stdout

    def write(self, program: Program, written: Sequence[Path], failure: Exception | None) -> None:
        """Write the document, and what could not be done in it."""
        if self._stdout is None:
            return
        summary, error_dict = self._words
        body = {"command": "run", **summary(program), "written": [str(path) for path in written]}
        if failure is not None:
            body["error"] = error_dict(failure)
        with contextlib.suppress(BrokenPipeError), os.fdopen(self._stdout, "w", encoding="utf-8") as stream:
            stream.write(json.dumps(body, indent=2) + "\n")
        self._stdout = None
