"""Figures of a program that a script needs."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..results.program import Program


def summary(program: Program) -> dict[str, Any]:
    """A program in short; the whole of it is what ``--out record.json`` writes."""
    from ..measures.program import sites_are_lower_bound
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
        "break_sites_at_least": sites_are_lower_bound(record),
        "causes": [
            {
                "kind": cause.kind,
                "head": words.head(cause, record),
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
        "missing": [asdict(missing) for missing in record.missing],
        "notes": list(record.notes),
        "unknown_fields": list(record.unknown_fields),
    }
