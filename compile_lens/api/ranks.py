"""Comparison of the programs of several ranks, after a run or in a rehearsal in one process."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from ..engine.entry import separates_keywords
from ..errors import UsageError
from ..measures.ranks import COMPLETE, differences, not_compared
from ..record.messages import first_names
from ..record.program import ProgramRecord
from ..results.program import Program, Ranks
from .load import import_trace, logs, rank_of_name
from .watch import ending


def merge(*programs: Program | str | os.PathLike[str]) -> Ranks:
    """Return the programs of several ranks and their differences: functions and their outcomes, operators and inputs of
    graphs, breaks, recompiles, and the collectives and messages that each rank issued, in order, within each group of
    ranks.

    Compiles are matched by function and number, groups by their members; device indices, names of groups and constants
    of operators are not compared. Needs no torch and runs no code of the records.

    Args:
        programs: for each rank a ``Program``, a ``.json`` written by ``compile-lens run``, or a log (``.log``) of
            ``TORCH_TRACE``; or a folder with the logs of all ranks. The rank of a log is in its entries or in its name
            (``…_rank_2.log``). If no rank is known, they are numbered in this order.

    Raises:
        UsageError: there are fewer than two, one is given twice, two have the same rank, only some have a rank, a
            rank is not below its world size, or a file cannot be read.
        RecordError: a file is not a program.
    """
    programs, notes = _with_folders(programs)
    records, more = _with_ranks_of_names(programs, [_record(one) for one in programs])
    notes += more
    if len(records) < 2:
        raise UsageError(f"merge takes the programs of two ranks or more, not {len(records)}")
    for number, record in enumerate(records):
        before = records.index(record)
        if before < number and record.created:  # records of two processes differ in their times
            raise UsageError(
                f"{_named(programs[before])} and {_named(programs[number])} are the same program: give each "
                "rank's program once"
            )
    if len({record.log for record in records}) > 1:
        raise UsageError("some are read from logs, which hold less: give only logs, or only watched programs")
    numbers = [record.rank for record in records]
    if all(rank is None for rank in numbers):
        notes += ("no program reports its rank: they are numbered in the order given",)
        return joined(dict(enumerate(records)), notes)
    by_rank: dict[int, ProgramRecord] = {}
    for record in records:
        if record.rank is None:
            raise UsageError(
                f"{record.name!r} has no rank, and others have one: torch.distributed was not in use"
            )
        if record.world and record.rank >= record.world:
            raise UsageError(
                f"{record.name!r} is of rank {record.rank} in a world of {record.world}, whose ranks are 0 to "
                f"{record.world - 1}: it is not from such a run"
            )
        if record.rank in by_rank:
            raise UsageError(f"two programs are of rank {record.rank}: give one of each rank")
        by_rank[record.rank] = record
    return joined(by_rank, notes)


_ProgramSource = Program | str | os.PathLike[str]


def _with_folders(programs: tuple[_ProgramSource, ...]) -> tuple[tuple[_ProgramSource, ...], tuple[str, ...]]:
    """Return the programs with each folder replaced by its logs, and a note on empty logs."""
    every: list[_ProgramSource] = []
    notes: tuple[str, ...] = ()
    for one in programs:
        folder = None if isinstance(one, Program) else Path(one)
        if folder is None or not os.path.isdir(folder):
            every.append(one)
            continue
        files = logs(folder)
        every += files or [one]  # reading it reports the problem
        empty = sorted(file.name for file in folder.glob("*.log") if file.is_file() and file not in files)
        if empty:
            notes += (f"these logs are empty and are left out: {first_names(empty)}",)
    return tuple(every), notes


def _with_ranks_of_names(
    programs: tuple[_ProgramSource, ...], records: list[ProgramRecord]
) -> tuple[list[ProgramRecord], tuple[str, ...]]:
    """Return the records with the ranks in their file names, if those are unique but the ranks in the entries are
    not."""
    names = [None if isinstance(one, Program) else rank_of_name(Path(one)) for one in programs]
    entries = [record.rank for record in records]
    known = None not in names and len(set(names)) == len(names)
    if not known or len(set(entries)) == len(entries) or not all(record.log for record in records):
        return records, ()
    note = "entries of several logs have the same rank: the ranks are those in the names of the files"
    return [replace(one, rank=rank) for one, rank in zip(records, names, strict=True)], (note,)


@separates_keywords()
def rehearse(
    function: Callable[..., Any],
    *args: Any,
    world_size: int = 8,
    kwargs: dict[str, Any] | None = None,
    **named: Any,
) -> Ranks:
    """Call a function once for each rank of an absent cluster, and return the differences between the ranks.

    Torch's fake process group simulates the other ranks in this process: ``torch.distributed`` reports rank and world
    size, and collectives return at once. Sizes are those of the cluster, values are not: each collective returns the
    rank's own input, or zeros. Small values (integers, objects, flags, a loss) are exchanged between the ranks; if one
    is not known in time, all ranks are called again. Graphs, breaks, recompiles, DDP's buckets, and issued collectives
    and messages (``record.issued``: by Python, graphs, DTensor and DDP's reducer) are observed as by ``watch``, so that
    a mismatch is found before a real cluster hangs on it.

    Args:
        function: the function that each rank runs. It must call ``torch.compile``, or be compiled itself, once for each
            rank.
        args, kwargs, named: arguments, the same on all ranks; the function may call ``torch.distributed.get_rank()``.
        world_size: number of ranks.

    Raises:
        UsageError: ``world_size`` is less than 2, ``torch.distributed`` is in use, or nothing was compiled on rank 0.
        Exception: the function raised on every rank before anything was compiled or issued. Otherwise ``ended`` of the
            rank's program has the error, and the program has what was observed before it.
    """
    from .._torch.watch.rank_values import RankValues
    from .._torch.watch.rehearsal import rehearse as run
    from .._torch.watch.rehearsal import why_impossible
    from ..engine.environment import environment

    if not callable(function):
        raise UsageError(f"rehearse calls a function, not {type(function).__name__}: {function!r}")
    if type(world_size) is not int or world_size < 2:
        raise UsageError(f"world_size={world_size!r} is not a number of ranks; give 2 or more")
    lacking = why_impossible()
    if lacking:
        raise UsageError(f"nothing can be rehearsed: {lacking}")
    name = getattr(function, "__qualname__", type(function).__name__)
    created = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    values = RankValues()
    for again in range(4 * world_size + _MAX_PASSES):
        by_rank: dict[int, ProgramRecord] = {}
        errors: list[BaseException] = []
        values.begin_pass()
        for rank in range(world_size):
            done = run(lambda: function(*args, **(kwargs or {})), rank, world_size, values)
            ended = "the call returned" if done.error is None else ending(done.error)
            by_rank[rank] = ProgramRecord(
                name=name,
                environment=environment("", ""),
                ended=ended,
                created=created,
                **{**vars(done.seen), "rank": rank, "world": world_size},
            )
            if done.error is not None and ended not in COMPLETE:
                errors.append(done.error)
            elif not rank and not by_rank[0].evaluations:
                raise UsageError(
                    f"{name} came to no torch.compile on rank 0, or to what was compiled before; give torch.compile(f) "
                    "of a function, or one that makes what it compiles"
                )
        # Each call dropped Dynamo's cache of its code, so only rank 0 can have found entries from before.
        if values.has_more() or (_found_old_entries(by_rank[0]) and again < world_size):
            continue
        limit = _MAX_PASSES if errors or (again > 1 and differences(by_rank, rehearsed=True)) else 2
        if not values.changed or again >= limit:
            break
    if len(errors) == world_size and not any(record.graphs or record.issued for record in by_rank.values()):
        raise errors[0]
    notes = ("rehearsed: no other process took part, and the results of collectives are not real values",)
    return joined(by_rank, notes, rehearsed=True)


_MAX_PASSES = 8
"""Maximum passes over all ranks while they differ and used values that later changed; two passes if they agree."""


def _found_old_entries(record: ProgramRecord) -> bool:
    """Return True if the first compile of a code object found older cache entries, which a new process would not
    have."""
    return any(one.recompilation is not None and one.id.endswith("/0") for one in record.evaluations)


def joined(by_rank: dict[int, ProgramRecord], notes: tuple[str, ...] = (), rehearsed: bool = False) -> Ranks:
    """Return the comparison of programs by rank."""
    ordered = dict(sorted(by_rank.items()))
    worlds = {record.world for record in ordered.values() if record.world}
    if len(worlds) > 1:
        sizes = " or ".join(map(str, sorted(worlds)))
        notes += (f"their world sizes differ ({sizes}): they are not from one run",)
    world = max(worlds) if len(worlds) == 1 else 0
    lacking = first_names(map(str, islice((rank for rank in range(world) if rank not in ordered), 16)), 16)
    if lacking:
        notes += (f"of {world} ranks, these are missing: {lacking}",)
    outside = first_names(str(rank) for rank in ordered if world and rank >= world)
    if outside:
        notes += (f"these ranks are not of a world of {world}: {outside}",)
    versions: dict[str, list[str]] = {}
    for rank, record in ordered.items():
        versions.setdefault(record.environment.torch or "not known", []).append(str(rank))
    if len(versions) > 1:
        each = (f"{torch} (rank {first_names(ranks)})" for torch, ranks in versions.items())
        notes += (f"their versions of torch differ: {'; '.join(each)}",)
    for rank, record in ordered.items():
        notes += tuple(
            f"rank {rank}: {missing.stage} not seen: {missing.reason}" for missing in record.missing
        )
    unknown = not_compared(ordered, rehearsed)
    return Ranks(tuple(ordered), tuple(ordered.values()), differences(ordered, rehearsed), notes, unknown)


def _named(one: Program | str | os.PathLike[str]) -> str:
    return repr(one) if isinstance(one, Program) else repr(os.fspath(one))


def _record(one: Program | str | os.PathLike[str]) -> ProgramRecord:
    if isinstance(one, Program):
        return one.record
    path = Path(one)
    return (import_trace(path) if path.suffix == ".log" or os.path.isdir(path) else Program.load(path)).record
