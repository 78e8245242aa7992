"""Phases that one capture has and the other lacks: what is computed in them, and by which kernels."""

from __future__ import annotations

from collections.abc import Iterator

from compile_lens.record.difference import ADDED, REMOVED, Change

from .kernels import title, works
from .operators import counted, name, operation
from .side import Side


def alone(sides: tuple[Side, Side], pairs: list[tuple[str, str]]) -> Iterator[Change]:
    """One change of the operators and one of the kernels for each phase that has no counterpart (``pairs`` says which
    do), as the backward where an input came to need a gradient. Of a phase that was not seen nothing is said here."""
    for number, kind in ((0, REMOVED), (1, ADDED)):
        side, other = sides[number], sides[1 - number]
        unseen = {m.stage.rpartition(" ")[2].partition(".")[0] for m in other.capture.missing}
        told = {pair[number] for pair in pairs} | unseen
        for phase in (p for p in side.phases if p not in told):
            yield from _operators(side, phase, kind)
            yield from _kernels(side, phase, kind)


def _operators(side: Side, phase: str, kind: str) -> Iterator[Change]:
    own = [item for item in side.stage(phase) if operation(item.node)]
    if own:
        names = counted(name(item.node) for item in own)
        lines = side.lines(item.address for item in own)
        yield Change("operators", kind, f"{_is(phase, kind)}: {_many(len(own), 'operator')}: {names}", lines)


def _kernels(side: Side, phase: str, kind: str) -> Iterator[Change]:
    own = works(side, phase)
    if own:
        calls = sum(work.kernel.language == "extern" for work in own)
        numbers = ((len(own) - calls, "kernel"), (calls, "library call"))
        many = " and ".join(_many(count, word) for count, word in numbers if count)
        names = counted(title(side, phase, work).removeprefix("the ") for work in own)
        lines = tuple(dict.fromkeys(line for work in own for line in side.kernel_lines(work.kernel)))
        yield Change("kernels", kind, f"{_is(phase, kind)}: {many}: {names}", lines)


def _is(phase: str, kind: str) -> str:
    return f"the {phase} is {'new' if kind == ADDED else 'gone'}"


def _many(count: int, word: str) -> str:
    return f"{count:,} {word}{'s' * (count != 1)}"
