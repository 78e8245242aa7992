"""Differences between the programs of several ranks, compared by function and compile."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import zip_longest

from compile_lens.record import claims
from compile_lens.record.graph import Frame
from compile_lens.record.logged_code import GeneratedModule
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

from .collective_order import ABSENT, depends_on_unknown_waits, differs, is_message, order_differences
from .program import break_line

COMPLETE = ("", "the block ended", "the program ended", "the call returned", "exit 0", "exit None")
"""Values of ``ProgramRecord.ended`` for a program that ended without an error, or is still being watched."""

_Key = tuple[str, str, int, int | None]


def differences(programs: Mapping[int, ProgramRecord], rehearsed: bool = False) -> tuple[RankDifference, ...]:
    """Return the differences between ranks by level, in the order of the lowest rank.

    ``rehearsed``: results of collectives were not real, nor are sizes that depend on them.
    """
    evaluations = {rank: _evaluations(program) for rank, program in programs.items()}
    keys = list(dict.fromkeys(key for own in evaluations.values() for key in own))
    issued = {rank: program.issued for rank, program in programs.items() if program.issued is not None}
    rank_differences = order_differences(issued, rehearsed) if len(issued) == len(programs) else []
    rank_differences += _logged_differences(programs)
    for key in keys:
        file, function, line, resumes = key
        place = Frame(file, resumes or line, function)
        has = {rank: ("compiled or tried" if key in own else ABSENT) for rank, own in evaluations.items()}
        rank_differences += differs(FUNCTIONS, place, 0, has)
        if ABSENT in has.values():
            continue
        for position, row in enumerate(zip_longest(*(evaluations[rank][key] for rank in programs))):
            by_rank = dict(zip(programs, row, strict=True))
            rank_differences += _compile(place, position, by_rank, programs)
    levels = list(LEVELS)
    return tuple(sorted(rank_differences, key=lambda one: levels.index(one.level)))


def _evaluations(program: ProgramRecord) -> dict[_Key, list[FrameEvaluation]]:
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
    def compare(level: str, text: Callable[[ProgramRecord, FrameEvaluation], str]) -> list[RankDifference]:
        values = {r: ABSENT if v is None else text(programs[r], v) for r, v in by_rank.items()}
        return differs(level, place, position, values)

    decisive = compare(OUTCOMES, lambda _, evaluation: evaluation.outcome) + compare(
        RECOMPILES, _recompile_text
    )
    evaluations = {rank: evaluation for rank, evaluation in by_rank.items() if evaluation is not None}
    if len(evaluations) < len(by_rank):
        return decisive  # a compile on only some ranks has nothing else to compare
    graphs = _operators(place, position, evaluations, programs)
    return [*decisive, *graphs, *compare(SHAPES, _inputs), *compare(BREAKS, _breaks)]


def _operators(
    place: Frame,
    position: int,
    evaluations: Mapping[int, FrameEvaluation],
    programs: Mapping[int, ProgramRecord],
) -> list[RankDifference]:
    """Compare the operators of graphs one by one; only their number if a rank's operators are not known."""
    graphs = {
        rank: [programs[rank].graphs[n] for n in evaluation.graphs]
        for rank, evaluation in evaluations.items()
    }
    known = all(len(graph.calls) == graph.operators for own in graphs.values() for graph in own)
    calls = {rank: [call for graph in own for call in graph.calls] for rank, own in graphs.items()}
    rows = enumerate(zip_longest(*calls.values())) if known else ()
    first = next((n for n, row in rows if len(set(row)) > 1), None)
    values = {}
    for rank, own in graphs.items():
        numbers = [graph.operators for graph in own]
        values[rank] = ABSENT
        if None in numbers:
            values[rank] = "not known"
        elif numbers:
            values[rank] = f"{' + '.join(map(str, numbers))} {'operator' if numbers == [1] else 'operators'}"
            if first is not None and first < len(calls[rank]):
                values[rank] += f", number {first + 1} is {calls[rank][first]}"
    return differs(GRAPHS, place, position, values)


_DEVICE = re.compile(r"\b([a-z_]+):(\d+)$")


def _inputs(program: ProgramRecord, evaluation: FrameEvaluation) -> str:
    """Return the inputs without device indices, which differ by construction; the devices of a rank with several are
    numbered by first use."""
    devices: dict[str, None] = {}
    for graph in program.graphs:
        devices |= {match[0]: None for one in graph.inputs if (match := _DEVICE.search(one))}
    numbers = {device: number for number, device in enumerate(devices)}

    def device(match: re.Match[str]) -> str:
        return match[1] if len(numbers) == 1 else f"{match[1]} (device {numbers[match[0]] + 1})"

    graphs = (program.graphs[n] for n in evaluation.graphs)
    return (
        "; ".join(", ".join(_DEVICE.sub(device, one) for one in graph.inputs) for graph in graphs) or ABSENT
    )


def _breaks(program: ProgramRecord, evaluation: FrameEvaluation) -> str:
    lines_and_types = ((break_line(one), one.type) for one in evaluation.breaks)
    return (
        "; ".join(f"line {at.line}: {what}" if at is not None else what for at, what in lines_and_types)
        or ABSENT
    )


_ADDRESS = re.compile(r"\b(0x[0-9a-f]+|\d{9,})\b|(?<=[a-z]:)\d+\b|(?<=group_name == )'[^']*'")
"""Parts of a guard's text that differ between processes by construction: addresses, ids, device indices and group
names."""


def _recompile_text(program: ProgramRecord, evaluation: FrameEvaluation) -> str:
    if evaluation.recompilation is None:
        return "compiled first"
    changed = evaluation.recompilation.change
    return _ADDRESS.sub("…", changed.text) if changed is not None else "compiled again"


def not_compared(programs: Mapping[int, ProgramRecord], rehearsed: bool = False) -> tuple[str, ...]:
    """Return the reasons why ranks may differ although no difference was observed."""
    reasons: dict[str, list[int]] = {}
    for rank, program in programs.items():
        own = program.issued
        distinct = own.distinct if own is not None else ()
        if program.log:
            reasons.setdefault("a log does not say how the program ended", []).append(rank)
        elif program.ended not in COMPLETE:
            reasons.setdefault("the program did not end as it should", []).append(rank)
        if own is None or program.lacks(claims.COLLECTIVES):
            reasons.setdefault("the collectives that were issued were not observed, or not all", []).append(
                rank
            )
        if own is not None and own.earlier:
            reasons.setdefault("collectives from before the watch began were not observed", []).append(rank)
        if any(not one.collective.group for one in distinct):
            reasons.setdefault("the members of a group are not known", []).append(rank)
        if any(is_message(one) and one.peer is None for one in distinct):
            reasons.setdefault("messages received from any rank are not matched", []).append(rank)
        if rehearsed and any(one.sized_by_values for one in distinct):
            reasons.setdefault("sizes that follow from values of other ranks are not compared", []).append(
                rank
            )
        if any(len(graph.calls) != graph.operators for graph in program.graphs):
            reasons.setdefault("operators are compared only by number", []).append(rank)
    known = {rank: program.issued for rank, program in programs.items() if program.issued is not None}
    if len(known) == len(programs) and depends_on_unknown_waits(known):
        reasons[
            "it is not known when ranks wait for some collectives, and so whether all of them continue"
        ] = [*programs]
    return tuple(
        f"{why} (rank {', '.join(map(str, ranks[:8]))}{', …' if len(ranks) > 8 else ''})"
        for why, ranks in reasons.items()
    )


def _logged_differences(programs: Mapping[int, ProgramRecord]) -> list[RankDifference]:
    """Return the first collective at which ranks differ, if all programs are logs: over the calls of graphs if all logs
    have these, else over the graphs once each. A log has the names of collectives, not their groups."""
    if not all(program.log for program in programs.values()):
        return []
    called = {rank: _called_modules(program) for rank, program in programs.items()}
    names: dict[int, list[str]] = {}
    for rank, program in programs.items():
        own = called[rank] if all(called.values()) else program.modules
        if any(module.collectives is None for module in own):
            return []
        names[rank] = [name for module in own for name in module.collectives or ()]
    for position, row in enumerate(zip_longest(*names.values(), fillvalue=ABSENT)):
        by_rank = differs(COLLECTIVES, None, position, dict(zip(names, row, strict=True)))
        if by_rank:
            return by_rank
    return []


def _called_modules(program: ProgramRecord) -> tuple[GeneratedModule, ...]:
    """Return the modules in call order; none if the log lacks calls, or a called compile id does not have exactly one
    module."""
    by_id: dict[str, list[GeneratedModule]] = {}
    for module in program.modules:
        by_id.setdefault(module.id, []).append(module)
    if any(len(by_id.get(id, ())) != 1 for id in program.graph_calls):
        return ()
    return tuple(by_id[id][0] for id in program.graph_calls)
