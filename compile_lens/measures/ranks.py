"""Differences between the programs of several ranks. They are compared by function, and by compile of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import zip_longest

from compile_lens.record.collectives import Collective
from compile_lens.record.graph import Frame
from compile_lens.record.program import NOTHING, FrameEvaluation, ProgramRecord
from compile_lens.record.ranks import (
    BREAKS,
    COLLECTIVES,
    FUNCTIONS,
    GRAPHS,
    LEVELS,
    OUTCOMES,
    RECOMPILES,
    SHAPES,
    RankDifference,
)

from .program import break_line

NONE = "none"
"""Value of a rank that lacks what others have."""

_Key = tuple[str, str, int, int | None]


def differences(programs: Mapping[int, ProgramRecord]) -> tuple[RankDifference, ...]:
    """Return what is not the same on all ranks, by level, and in the order in which the lowest rank met it."""
    visits = {rank: _visits(program) for rank, program in programs.items()}
    keys = list(dict.fromkeys(key for rank_differences in visits.values() for key in rank_differences))
    rank_differences = _collectives(programs)
    for key in keys:
        file, function, line, resumes = key
        place = Frame(file, resumes or line, function)
        has = {rank: ("compiled or tried" if key in own else NONE) for rank, own in visits.items()}
        rank_differences += _differs(FUNCTIONS, place, 0, has)
        if NONE in has.values():
            continue
        for position, row in enumerate(zip_longest(*(visits[rank][key] for rank in programs))):
            by_rank = dict(zip(programs, row, strict=True))
            rank_differences += _compile(place, position, by_rank, programs)
    levels = list(LEVELS)
    return tuple(sorted(rank_differences, key=lambda one: levels.index(one.level)))


def _visits(program: ProgramRecord) -> dict[_Key, list[FrameEvaluation]]:
    evaluations: dict[_Key, list[FrameEvaluation]] = {}
    for frame in program.frames:
        own = [v for v in frame.evaluations if v.outcome != NOTHING]
        if own:
            evaluations.setdefault((frame.file, frame.function, frame.line, frame.resume_line), []).extend(
                own
            )
    return {key: sorted(own, key=lambda v: v.number) for key, own in evaluations.items()}


def _compile(
    place: Frame,
    position: int,
    by_rank: Mapping[int, FrameEvaluation | None],
    programs: Mapping[int, ProgramRecord],
) -> list[RankDifference]:
    def differs(level: str, told: Callable[[ProgramRecord, FrameEvaluation], str]) -> list[RankDifference]:
        values = {r: NONE if v is None else told(programs[r], v) for r, v in by_rank.items()}
        return _differs(level, place, position, values)

    decisive = differs(OUTCOMES, lambda _, visit: visit.outcome) + differs(RECOMPILES, _again)
    if None in by_rank.values():
        return decisive  # what there is of it on some ranks alone says nothing more
    return [*decisive, *differs(GRAPHS, _operators), *differs(SHAPES, _inputs), *differs(BREAKS, _breaks)]


def _operators(program: ProgramRecord, visit: FrameEvaluation) -> str:
    numbers = [program.graphs[n].operators for n in visit.graphs]
    if not numbers:
        return NONE
    if None in numbers:
        return "not known"
    return f"{' + '.join(map(str, numbers))} {'operator' if numbers == [1] else 'operators'}"


def _inputs(program: ProgramRecord, visit: FrameEvaluation) -> str:
    return "; ".join(", ".join(program.graphs[n].inputs) for n in visit.graphs) or NONE


def _breaks(program: ProgramRecord, visit: FrameEvaluation) -> str:
    lines_and_types = ((break_line(one), one.type) for one in visit.breaks)
    return (
        "; ".join(f"line {at.line}: {what}" if at is not None else what for at, what in lines_and_types)
        or NONE
    )


def _again(program: ProgramRecord, visit: FrameEvaluation) -> str:
    if visit.recompilation is None:
        return "compiled first"
    changed = visit.recompilation.change
    return changed.text if changed is not None else "compiled again"


def collectives(program: ProgramRecord) -> list[tuple[str, Collective, bool]]:
    """Return the collectives of graphs where the graph was compiled, and those that Python called where it did: each
    with the id of its graph (``""``: Python called it) and whether it is compared. In a group of some ranks only,
    Python calls what the other ranks do not."""
    compared: list[tuple[str, Collective, bool]] = []
    outside = list(program.eager_collectives or ())
    for position, graph in enumerate(program.graphs):
        while outside and outside[0].graphs_before <= position:
            one = outside.pop(0)
            compared.append(("", one.collective, one.all_ranks))
        compared += [(graph.id, one, True) for one in graph.collectives]
    return [*compared, *(("", one.collective, one.all_ranks) for one in outside)]


def _collectives(programs: Mapping[int, ProgramRecord]) -> list[RankDifference]:
    """The first collective that is not the same everywhere: those after it stand in other places."""
    own = {
        rank: [(graph, one) for graph, one, compared in collectives(program) if compared]
        for rank, program in programs.items()
    }
    for position, row in enumerate(zip_longest(*own.values())):
        by_rank = dict(zip(programs, row, strict=True))
        first = next((c for c in row if c is not None), None)
        place = first[1].line if first is not None else None
        by_name = _differs(
            COLLECTIVES,
            place,
            position,
            {r: difference_text(c[1] if c else None) for r, c in by_rank.items()},
        )
        if by_name:
            return by_name
    return []


def difference_text(found: Collective | None) -> str:
    """A collective in a line."""
    if found is None:
        return NONE
    of = f" of {', '.join(found.inputs)}" if found.inputs else ""
    return f"{found.name}{of} ({found.arguments})" if found.arguments else f"{found.name}{of}"


def _differs(
    level: str, place: Frame | None, position: int, values: Mapping[int, str]
) -> list[RankDifference]:
    by_value: dict[str, list[int]] = {}
    for rank in sorted(values):
        by_value.setdefault(values[rank], []).append(rank)
    if len(by_value) < 2:
        return []
    values_and_ranks = tuple((value, tuple(ranks)) for value, ranks in by_value.items())
    return [RankDifference(level, place, position, values_and_ranks)]
