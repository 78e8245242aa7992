"""Programs of several processes that work together, and what differs between them."""

from __future__ import annotations

from dataclasses import dataclass

from .graph import Frame
from .program import ProgramRecord

FUNCTIONS, OUTCOMES, GRAPHS, SHAPES, COLLECTIVES, BREAKS, RECOMPILES = (
    "functions", "outcomes", "graphs", "shapes", "collectives", "breaks", "recompiles",
)  # fmt: skip
LEVELS = {
    COLLECTIVES: "collectives and messages as a rank issues them, in order, within each group of ranks",
    FUNCTIONS: "functions that Dynamo evaluated",
    OUTCOMES: "what became of a function",
    GRAPHS: "operators of a graph, by name and order; their constants are not compared",
    SHAPES: "what a graph takes; indices of devices are not compared",
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
        group: of a collective, the ranks of its group; of a message, its ends; of ranks that wait for each other,
            these.
    """

    level: str
    place: Frame | None
    position: int
    values: tuple[tuple[str, tuple[int, ...]], ...]
    group: tuple[int, ...] = ()


@dataclass(frozen=True, repr=False)
class RanksRecord:
    """Programs by rank, and what differs.

    Attributes:
        ranks: of each program, in order.
        programs: as each process saw its own.
        differences: what is not the same on all of them, by level.
        not_compared: what keeps one from saying that they do the same where no difference is known.
        notes: what a reader should know.
    """

    ranks: tuple[int, ...]
    programs: tuple[ProgramRecord, ...]
    differences: tuple[RankDifference, ...] = ()
    notes: tuple[str, ...] = ()
    not_compared: tuple[str, ...] = ()
