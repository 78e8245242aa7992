"""Journal of a running program, a line for each frame evaluation, so that observations survive a crash.

The first line is the record without observations; each other line is a record of one frame evaluation and its graphs.
An incomplete line is the last one, which the process could not finish.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable

from ..errors import RecordError
from .codec import from_json, to_json
from .graph import Source
from .missing import Missing
from .program import FrameEvaluation, ProgramFrame, ProgramGraph, ProgramRecord

CUT_OFF = "the program ended abruptly, or is still running: this is what was recorded by then"
"""Value of ``ProgramRecord.ended`` for a record assembled from a journal."""

NOTHING_SEEN = "the program ended before anything was observed, or is still running"
"""The same for a journal without frame evaluations."""


def header_line(record: ProgramRecord) -> str:
    """Return the first line of a journal, which is itself the record of a program."""
    not_counted = (
        Missing("the time of compiling", "the program ended before torch's events were recorded"),
        Missing(
            "frames skipped outside of the program",
            "it is counted at the end, which was not reached",
        ),
        Missing("graphs of what nothing called", "they are counted at the end, which was not reached"),
        Missing(
            "what ran eagerly without a frame evaluation", "it is counted at the end, which was not reached"
        ),
    )
    missing = (*record.missing, *not_counted)
    return journal_line(dataclasses.replace(record, ended=NOTHING_SEEN, missing=missing, issued=None))


def journal_line(record: ProgramRecord) -> str:
    """Return the line for a record, with its newline."""
    return to_json(record) + "\n"


def is_journal(text: str) -> bool:
    """Return True if a text has lines of a journal, rather than one record."""
    first, _, rest = text.partition("\n")
    try:
        return bool(rest.strip()) and isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        return False


def from_journal(text: str) -> ProgramRecord:
    """Return the record of a program from its journal; raise ``RecordError`` if the first line is not a record."""
    first, *rest = text.splitlines()
    record = from_json(first, ProgramRecord)
    parts = []
    unfinished = 0
    for number, one in enumerate(rest):
        try:
            parts.append(from_json(one, ProgramRecord))
        except RecordError:
            if number < len(rest) - 1:
                raise
            unfinished = 1
    notes = ("the last line of the journal was not finished",) if unfinished else ()
    ended = CUT_OFF if parts else NOTHING_SEEN
    return dataclasses.replace(_joined(record, parts), ended=ended, notes=(*record.notes, *notes))


def _joined(record: ProgramRecord, parts: Iterable[ProgramRecord]) -> ProgramRecord:
    frames: dict[ProgramFrame, list[FrameEvaluation]] = {}
    graphs: list[ProgramGraph] = []
    sources: dict[Source, None] = {}
    seconds, hooks = record.seconds, record.overhead_seconds
    rank, world = record.rank, record.world
    for part in parts:
        for frame in part.frames:
            frames.setdefault(dataclasses.replace(frame, evaluations=()), []).extend(frame.evaluations)
        graphs += part.graphs
        sources.update(dict.fromkeys(part.sources))
        if part.rank is not None:
            rank, world = part.rank, part.world
        seconds, hooks = max(seconds, part.seconds), max(hooks, part.overhead_seconds)
    graphs.sort(key=lambda g: g.number)
    order = {graph.number: i for i, graph in enumerate(graphs)}
    evaluation_numbers = sorted(v.number for evaluations in frames.values() for v in evaluations)
    numbers = {number: i for i, number in enumerate(evaluation_numbers)}
    joined_frames = tuple(
        dataclasses.replace(frame, evaluations=tuple(_renumbered(v, order, numbers) for v in evaluations))
        for frame, evaluations in frames.items()
    )
    return dataclasses.replace(
        record,
        frames=tuple(sorted(joined_frames, key=lambda f: f.evaluations[0].number)),
        graphs=tuple(dataclasses.replace(g, number=order[g.number]) for g in graphs),
        sources=tuple(sources),
        seconds=seconds,
        rank=rank,
        world=world,
        overhead_seconds=hooks,
    )


def _renumbered(
    evaluation: FrameEvaluation, graphs: dict[int, int], evaluations: dict[int, int]
) -> FrameEvaluation:
    breaks = (
        dataclasses.replace(b, graph=None if b.graph is None else graphs[b.graph]) for b in evaluation.breaks
    )
    return dataclasses.replace(
        evaluation,
        number=evaluations[evaluation.number],
        graphs=tuple(graphs[g] for g in evaluation.graphs),
        breaks=tuple(breaks),
    )
