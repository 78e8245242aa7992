"""Finding on the parts that torch would record as CUDA graphs, and the lines that prevent the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from compile_lens.measures.chain import Address, Chain
from compile_lens.record.capture import Record
from compile_lens.record.cuda_graphs import REASONS, CudaGraphs, ProgramCudaGraphs
from compile_lens.record.graph import Frame
from compile_lens.record.messages import first_names
from compile_lens.record.program import ProgramRecord

from ..document import NAME, NUMBER, TEXT, Finding, Prose, Row, Section, Table, cut
from ..words.labels import places as lines
from ..words.quantities import plural
from .places import Place, places

KEY, TITLE = "cuda_graphs", "CUDA graphs"
INTRO = (
    "Which kernels torch would record once and replay under mode='reduce-overhead', by the compiler's own checks. "
    "What is known only when it runs is not in it."
)
WHERE = "capture.compilations[i].cuda_graphs"
RUN_TIME = (
    "Unknown until it runs: whether an input that is written into is itself of an earlier CUDA graph, whether the "
    "addresses that should stay do, how many sizes come (each has a recording of its own), and whether the device "
    "refuses a recording."
)
WITHOUT = (
    "The code was compiled without CUDA graphs, and the checks were applied to it, in the order that torch would give "
    "its kernels for them."
)
_ROWS = 300
At = Callable[[str, Iterable[str]], tuple[tuple[Address, ...], tuple[Frame, ...]]]
"""Function that returns, for names in a lowered stage, their addresses in the chain and their Python lines."""
HEAD, KINDS = ("part", "groups", "recorded", "what", "why", "from"), (NUMBER, NUMBER, NAME, NAME, TEXT, NAME)


def cuda_graphs(capture: Record) -> Finding | None:
    """Return the finding; None if nothing was lowered for an NVIDIA GPU."""
    held = [(p, one) for p in places(capture) for one in p.compilation.cuda_graphs if one.phase == p.phase]
    if not held:
        return None
    chain = Chain(capture)

    def of(place: Place) -> At:
        def at(stage: str, names: Iterable[str]) -> tuple[tuple[Address, ...], tuple[Frame, ...]]:
            known = tuple(a for name in names if name and (a := place.at(stage, name)) in chain)
            return known, tuple(
                dict.fromkeys(frame for address in known for frame in chain.lines(address, derivatives=False))
            )

        return at

    return _finding([(place.title, one, of(place)) for place, one in held], WHERE)


def of_program(program: ProgramRecord) -> Finding | None:
    """Return the finding on a program with CUDA graph results; None if it has none."""

    def of(one: ProgramCudaGraphs) -> At:
        lines = dict(one.lines)
        return lambda _, asked: ((), tuple(dict.fromkeys(f for name in asked for f in lines.get(name, ()))))

    held = [
        (" ".join(x for x in (f"graph {one.graph}, {one.id}", one.result.phase) if x), one.result, of(one))
        for one in program.cuda_graphs
    ]
    differs = dict.fromkeys(words for one in program.cuda_graphs for words in one.may_differ)
    devices = first_names(dict.fromkeys(one.device for one in program.cuda_graphs))
    return _finding(held, "program.record.cuda_graphs", f" for {devices}", tuple(differs)) if held else None


def _finding(
    held: list[tuple[str, CudaGraphs, At]], where: str, whose: str = "", differs: tuple[str, ...] = ()
) -> Finding:
    sections: list[Section] = [_table(title, one, at, where) for title, one, at in held]
    without = [title for title, one, _ in held if one.phase and not one.enabled]
    if without:
        of_all = len(without) == sum(one.phase != "" for _, one, _ in held)
        sections.append(
            Prose("how it was checked", (WITHOUT if of_all else f"{first_names(without)}: {WITHOUT}",))
        )
    if differs:
        sections.append(Prose("what may differ on the GPU", differs[:_ROWS]))
    sections.append(Prose("what is not known", (RUN_TIME,)))
    brief = tuple(f"{title}: {said(one)}" for title, one, _ in held)
    whole = sum(_whole(one) for _, one, _ in held)
    fact = f"{whole} of {plural(len(held), 'phase')} recorded whole{whose}"
    return Finding(KEY, TITLE, INTRO, fact, brief, where, tuple(sections))


def said(one: CudaGraphs) -> str:
    """Return the result for a phase in a few words."""
    moving = [m.name for m in one.mutated_inputs if not m.static]
    if one.unknown_reason:
        return f"not known: {one.unknown_reason}"
    if one.skip_reason:
        return f"nothing is recorded: {one.skip_reason}"
    if moving:
        return f"nothing is recorded unless {first_names(moving)} come from an earlier CUDA graph: it writes into them"
    kept = sum(part.recorded for part in one.partitions)
    if _whole(one):
        return "all of it is recorded"
    return f"{plural(kept, 'part is', 'parts are')} recorded, {len(one.partitions) - kept} not"


def _whole(one: CudaGraphs) -> bool:
    fixed = all(m.static for m in one.mutated_inputs)
    return (
        bool(one.partitions)
        and not one.skip_reason
        and fixed
        and all(part.recorded for part in one.partitions)
    )


def _table(title: str, one: CudaGraphs, at: At, where: str) -> Table:
    rows = []
    for number, part in enumerate(one.partitions, 1):
        count = str(len(part.groups))
        if part.recorded:
            addresses, _ = at("groups", part.groups)
            rows.append(Row((str(number), count, "yes", first_names(part.groups, 4), "", ""), addresses))
        for group, reason in part.reasons:
            addresses, frames = at("groups", (group,))
            why = f"{REASONS[reason]} ({reason})" if reason in REASONS else reason
            rows.append(Row((str(number), count, "no", group, why, lines(frames)), addresses))
    if one.skip_reason:
        addresses, frames = at("post_grad", (one.node,))
        rows.append(Row(("", "", "nothing", one.node, one.skip_reason, lines(frames)), addresses))
    for mutated in one.mutated_inputs:
        addresses, frames = at("post_grad", (mutated.node,))
        why = "it is written into, at an address that stays" if mutated.static else (
            "it is written into: unless it is itself of an earlier CUDA graph, nothing is recorded"
        )  # fmt: skip
        recorded = "yes" if mutated.static else "no"
        rows.append(Row(("", "", recorded, mutated.name, why, lines(frames)), addresses))
    shown, left = cut(rows, _ROWS)
    words = [said(one)]
    if one.phase and not one.graph_partition:
        words.append(
            "torch._inductor.config.graph_partition is off: one that cannot be recorded keeps the rest from being "
            "recorded"
        )
    return Table(title, HEAD, KINDS, shown, tuple(words), left, where)
