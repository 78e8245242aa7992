"""Programs of several processes together: those that ran, and a rehearsal of those that will."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import UsageError
from ..measures.ranks import differences
from ..record.program import ProgramRecord
from ..results.program import Program
from ..results.ranks import Ranks
from .logs import import_trace


def merge(*programs: Program | str | os.PathLike[str]) -> Ranks:
    """The programs of several ranks together, and what differs: functions, what became of them, operators and inputs
    of their graphs, breaks, recompiles, and the order of collectives.

    Compares by function and by which compile of it. Needs no torch and runs no code of the records.

    Args:
        programs: of each rank a ``Program``, the ``.json`` that ``compile-lens run`` wrote, or a log (``.log``) of
            ``TORCH_TRACE``. Where none says its rank, they are numbered in this order.

    Raises:
        UsageError: there are fewer than two, two are of the same rank, only some say their rank, or a file cannot be
            read.
        RecordError: a file is no program.
    """
    records = [_record(one) for one in programs]
    if len(records) < 2:
        raise UsageError(f"merge takes the programs of two ranks or more, not {len(records)}")
    if len({record.log for record in records}) > 1:
        raise UsageError(
            "some are read from logs, which hold less: give logs alone, or what was watched alone"
        )
    told = [record.rank for record in records]
    if all(rank is None for rank in told):
        notes: tuple[str, ...] = ("no program says its rank: they are numbered as they were given",)
        return joined(dict(enumerate(records)), notes)
    by_rank: dict[int, ProgramRecord] = {}
    for record in records:
        if record.rank is None:
            raise UsageError(
                f"{record.name!r} does not say its rank, and others do: torch.distributed was not in use"
            )
        if record.rank in by_rank:
            raise UsageError(f"two programs are of rank {record.rank}: give one of each rank")
        by_rank[record.rank] = record
    return joined(by_rank)


def joined(by_rank: dict[int, ProgramRecord], notes: tuple[str, ...] = ()) -> Ranks:
    """The programs by rank, compared."""
    ordered = dict(sorted(by_rank.items()))
    worlds = {record.world for record in ordered.values() if record.world}
    if len(worlds) > 1:
        told = " or ".join(map(str, sorted(worlds)))
        notes += (f"they say that there are {told} processes: they are not of one run",)
    lacking = sorted(set(range(max(worlds, default=0))) - set(ordered)) if len(worlds) == 1 else []
    if lacking:
        notes += (f"of {max(worlds)} ranks these are not here: {', '.join(map(str, lacking[:16]))}",)
    for rank, record in ordered.items():
        notes += tuple(
            f"rank {rank}: {missing.stage} not seen: {missing.reason}" for missing in record.missing
        )
    return Ranks(tuple(ordered), tuple(ordered.values()), differences(ordered), notes)


def _record(one: Program | str | os.PathLike[str]) -> ProgramRecord:
    if isinstance(one, Program):
        return one.record
    path = Path(one)
    return (import_trace(path) if path.suffix == ".log" or path.is_dir() else Program.load(path)).record
