"""JSON summary of a program, and the single JSON document on stdout of a run, whose program prints to stderr."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..results.program import Program


def summary(program: Program) -> dict[str, Any]:
    """Return the summary of a program; ``--out record.json`` writes the full record."""
    from ..views.words import program as words

    record = program.record
    return {
        "name": record.name,
        "arguments": list(record.arguments),
        "environment": asdict(record.environment),
        "ended": record.ended,
        "state": words.state(record),
        "verdict": words.verdict(record),
        "counts": asdict(program.counts),
        "causes": [
            {
                "kind": cause.kind,
                "head": words.head(cause),
                "because": words.because(cause),
                "try": words.advice(cause, record.environment.torch),
                "place": None
                if cause.place is None
                else {"file": cause.place.file, "line": cause.place.line},
            }
            for cause in program.causes
        ],
        "lines": {
            file: {
                state: [x.line for x in rows if x.state == state]
                for state in ("broke", "eager", "compiled", "never")
            }
            for file, rows in program.lines.items()
        },
        "profile": None if record.profile is None else asdict(record.profile),
        "remedies": None if record.remedies is None else asdict(record.remedies),
        "missing": [asdict(missing) for missing in record.missing],
        "notes": list(record.notes),
        "unknown_fields": list(record.unknown_fields),
    }


class Document:
    """Standard output reserved for one JSON document; meanwhile the program and its child processes write to stderr."""

    def __init__(self) -> None:
        self._stdout: int | None = None

    def begin(self) -> None:
        """Redirect stdout to stderr from now on."""
        from .output import document, error_dict

        self._text, self._error_dict = document, error_dict  # not everything can be imported at exit
        if sys.stdout is not None:
            sys.stdout.flush()
        with contextlib.suppress(OSError):  # a descriptor is closed: no reader
            stdout = os.dup(1)
            os.dup2(2, 1)
            self._stdout = stdout

    def write(self, program: Program, written: Sequence[Path], failure: Exception | None) -> None:
        """Write the document to the real stdout, with the error if there is one."""
        if self._stdout is None:
            return
        body = {"command": "run", **summary(program), "written": [str(path) for path in written]}
        if failure is not None:
            body["error"] = self._error_dict(failure)
        with contextlib.suppress(BrokenPipeError), os.fdopen(self._stdout, "w", encoding="utf-8") as stream:
            stream.write(self._text(body) + "\n")
        self._stdout = None
