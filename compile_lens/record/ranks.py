"""Programs of several processes that work together, and what differs between them."""

from __future__ import annotations

from dataclasses import dataclass

from .graph import Frame
from .program import ProgramRecord

FUNCTIONS, OUTCOMES, GRAPHS, SHAPES, COLLECTIVES, BREAKS, RECOMPILES = (
    "functions", "outcomes", "graphs", "shapes", "collectives", "breaks", "recompiles",
)  # fmt: skip
LEVELS = {
    COLLECTIVES: "collectives, those of a graph where it was compiled, those that Python calls where it did",
    FUNCTIONS: "functions that Dynamo evaluated",
    OUTCOMES: "what became of a function",
    GRAPHS: "operators of a graph",
    SHAPES: "what a graph takes",
    BREAKS: "graph breaks",
    RECOMPILES: "what made a function be compiled again",
}
"""Levels at which ranks can differ: first those that make processes wait for each other for ever."""


@dataclass(frozen=True)
class RankDifference:
    """One thing that is not the same on all ranks.

    Attributes:
        level: a key of ``LEVELS``.
        place: the function or line.
        position: of a function's compile, or of a collective: which one, from 0.
        values: what it is, and the ranks where it is so, that of the lowest rank first.
    """

    level: str
    place: Frame | None
    position: int
    values: tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True, repr=False)
class RanksRecord:
    """Programs by rank, and what differs.

    Attributes:
        ranks: of each program, in order.
        programs: as each process saw its own.
        differences: what is not the same on all of them, by level.
        notes: what a reader should know.
    """

    ranks: tuple[int, ...]
    programs: tuple[ProgramRecord, ...]
    differences: tuple[RankDifference, ...] = ()
    notes: tuple[str, ...] = ()
