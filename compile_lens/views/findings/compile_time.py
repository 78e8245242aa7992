"""Findings about the compile time and the caches of a watched program, and its times as trace events for Perfetto."""

from __future__ import annotations

import json
import os
from typing import Any

from compile_lens.measures import program as measures
from compile_lens.measures.compile_time import BUILDING, PARTS, Spent
from compile_lens.measures.compile_time import caches as caches_of
from compile_lens.measures.compile_time import compile_time as time_by_function
from compile_lens.record import claims
from compile_lens.record.program import ProgramFrame, ProgramRecord

from ..document import NAME, NUMBER, TEXT, Finding, Picture, Row, Section, Table, table_finding
from ..drawing.icicle import icicle
from ..words.quantities import duration, plural

NESTED = "Parts are nested, so the sums overlap."

ROUNDING = 0.01
"""The sum of the rows may exceed the total by this share, since events begin and end at slightly different times."""


def compile_time(program: ProgramRecord) -> Finding | None:
    """Return the finding; ``None`` if no event has a duration."""
    totals: dict[str, list[float]] = {}
    for event in program.events:
        if event.duration:
            totals.setdefault(event.name, []).append(event.duration / 1e6)
    if not totals:
        return None
    ranked = sorted(totals.items(), key=lambda one: -sum(one[1]))
    rows = [
        Row((name, str(len(times)), duration(sum(times)), duration(max(times)))) for name, times in ranked
    ]
    kinds = (NAME, NUMBER, NUMBER, NUMBER)
    parts = Table("", ("part", "times", "sum", "longest"), kinds, tuple(rows), (NESTED,))
    head = ("function", "ids", "in all", "Dynamo", "AOT", "Inductor", "builds", "backend")
    by_function: list[Row] = []
    spent_by_function = time_by_function(program)
    for spent in spent_by_function:
        times = (duration(spent.seconds[part]) if spent.seconds[part] else "" for part in PARTS)
        name = _whose(spent, program.lacks(claims.EVALUATIONS, claims.COMPILE_IDS), bool(program.ahead))
        by_function.append(Row((name, str(len(spent.ids)), duration(spent.total), *times)))
    seconds, rows_together = measures.compile_seconds(program), sum(one.total for one in spent_by_function)
    words = () if rows_together <= seconds * (1 + ROUNDING) else (_parallel(rows_together, seconds),)
    functions = Table("", head, (NAME, *[NUMBER] * (2 + len(PARTS))), tuple(by_function), words)
    sections: list[Section] = [functions, parts]
    if svg := icicle(program):
        alt = "the nested parts of compile time, drawn as wide as they took; the tables have the same figures"
        sections.insert(0, Picture("", svg, alt))
    intro = (
        "By torch's own events, measured. By function each part of the compiler has its own time (builds: of kernels; "
        "backend: what it does itself)."
    )
    share = (
        f"of {duration(program.seconds)} ({seconds / program.seconds:.0%})" if program.seconds else "in all"
    )
    fact = f"{duration(seconds)} {share}"
    return Finding("time", "Compile time", intro, fact, (), "program.events", tuple(sections), few=8)


def _parallel(rows_together: float, seconds: float) -> str:
    """Return the reason why the sum of the rows exceeds the total."""
    return (
        f"Threads work at the same time and each is counted: the rows add up to {duration(rows_together)}, "
        f"and {duration(seconds)} passed."
    )


def _whose(spent: Spent, lacking: str, ahead: bool) -> str:
    if spent.frame is not None:
        return f"{spent.frame.function} {place_of(spent.frame)}"
    beside = not spent.ids and all(part == BUILDING for part, seconds in spent.seconds.items() if seconds)
    if beside:
        return "threads that build, for which a compile waits"
    if ahead and not spent.ids:
        return "without a call"
    return "of a frame evaluation that was not seen, or of none" if lacking else "of no frame evaluation"


def caches(program: ProgramRecord) -> Finding | None:
    """Return the finding; ``None`` if no cache was used."""
    every = caches_of(program)
    rows = []
    for cache in every:
        figures = (str(cache.hits), str(cache.misses), str(cache.bypassed))
        off = (f"switched off for {plural(cache.disabled, 'graph')}",) if cache.disabled else ()
        rows.append((cache.name, *figures, "; ".join((*off, *cache.why))))
    columns = {"cache": NAME, "hits": NUMBER, "misses": NUMBER, "passed by": NUMBER, "torch says": TEXT}
    intro = (
        "How often each of the compiler's caches was queried for a graph: what it had was not compiled again."
    )
    least = "at least " if program.lacks(claims.CACHES) else ""
    fact = f"{least}{sum(cache.hits for cache in every)} hits, {least}{sum(c.misses for c in every)} misses"
    return table_finding("caches", "Caches", intro, fact, "program.caches", columns, rows)


def place_of(frame: ProgramFrame) -> str:
    """Return the line of a compiled function: ``train.py:31``."""
    at = frame.resume_line or frame.line
    return f"{os.path.basename(frame.file)}:{at}" if frame.file else ""


def to_trace(program: ProgramRecord) -> str:
    """Return trace-event JSON: a slice for each part of a compilation, an instant for each answer of a cache. Times are
    microseconds since the start of watching; threads have their number in the record."""
    threads = sorted({event.thread for event in program.events})
    events: list[dict[str, Any]] = [_named("process_name", 0, program.name)]
    events += [_named("thread_name", thread, f"thread {thread}") for thread in threads]
    for event in program.events:
        facts = {"compile id": event.id, "phase": event.phase, **dict(event.detail)}
        known = {key: value for key, value in facts.items() if value}
        shared = {"name": event.name, "cat": "compile", "ts": event.start, "pid": 0, "tid": event.thread}
        slice_of = {"ph": "X", "dur": event.duration} if event.duration else {"ph": "i", "s": "t"}
        events.append({**shared, "args": known, **slice_of})
    return json.dumps({"displayTimeUnit": "ms", "traceEvents": events}, allow_nan=False)


def _named(what: str, thread: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": 0, "tid": thread, "args": {"name": name}}
