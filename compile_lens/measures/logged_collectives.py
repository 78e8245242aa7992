"""Collectives of the graphs of logs, compared between ranks: a log has their names and order, and not their groups."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest

from compile_lens.record.logged_code import GeneratedModule
from compile_lens.record.program import ProgramRecord
from compile_lens.record.ranks import COLLECTIVES, RankDifference

from .collective_order import NONE, differs


def logged_differences(programs: Mapping[int, ProgramRecord]) -> list[RankDifference]:
    """Return the first place at which ranks differ, where all programs are logs: in the calls of their graphs, or in
    the graphs once each where not every log has those."""
    if not all(program.log for program in programs.values()):
        return []
    called = {rank: called_modules(program) for rank, program in programs.items()}
    names: dict[int, list[str]] = {}
    for rank, program in programs.items():
        own = called[rank] if all(called.values()) else program.modules
        if any(module.collectives is None for module in own):
            return []
        names[rank] = [name for module in own for name in module.collectives or ()]
    for position, row in enumerate(zip_longest(*names.values(), fillvalue=NONE)):
        by_rank = differs(COLLECTIVES, None, position, dict(zip(names, row, strict=True)))
        if by_rank:
            return by_rank
    return []


def called_modules(program: ProgramRecord) -> tuple[GeneratedModule, ...]:
    """Return the modules in the order of their calls; none where a log does not have that, or calls are of a compile
    with several modules."""
    by_id: dict[str, list[GeneratedModule]] = {}
    for module in program.modules:
        by_id.setdefault(module.id, []).append(module)
    if any(len(by_id.get(id, ())) != 1 for id in program.graph_calls):
        return ()
    return tuple(by_id[id][0] for id in program.graph_calls)
