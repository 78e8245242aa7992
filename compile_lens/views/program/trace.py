"""The times of compiling in the form that Perfetto, ``chrome://tracing`` and speedscope open."""

from __future__ import annotations

import json
from typing import Any

from compile_lens.record.program import ProgramRecord


def to_trace(program: ProgramRecord) -> str:
    """Trace-event JSON: a slice for each part of compiling, an instant for what a cache said; times in microseconds
    from the beginning of the watch, threads by their number in the record."""
    threads = sorted({event.thread for event in program.events})
    events: list[dict[str, Any]] = [_named("process_name", 0, program.name)]
    events += [_named("thread_name", thread, f"thread {thread}") for thread in threads]
    for event in program.events:
        facts = {"compile id": event.id, "phase": event.phase, **dict(event.detail)}
        told = {key: value for key, value in facts.items() if value}
        shared = {
            "name": event.name,
            "cat": "compile",
            "ts": event.start,
            "pid": 0,
            "tid": event.thread,
            "args": told,
        }
        events.append(
            {**shared, "ph": "X", "dur": event.duration}
            if event.duration
            else {**shared, "ph": "i", "s": "t"}
        )
    return json.dumps({"displayTimeUnit": "ms", "traceEvents": events}, allow_nan=False)


def _named(what: str, thread: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": 0, "tid": thread, "args": {"name": name}}
