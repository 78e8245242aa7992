"""Programs of several cooperating processes, and the differences between them."""

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
"""Levels at which ranks can differ: first those that can cause a deadlock."""


@dataclass(frozen=True)
class RankDifference:
    """One difference between ranks.

    Attributes:
        level: a key of ``LEVELS``.
        place: the function or line.
        position: number of a function's compile, or of a collective, from 0.
        values: each value with its ranks, that of the lowest rank first.
        group: the ranks of a collective's group; the two ends of a message; the ranks that wait for each other.
    """

    level: str
    place: Frame | None
    position: int
    values: tuple[tuple[str, tuple[int, ...]], ...]
    group: tuple[int, ...] = ()


@dataclass(frozen=True, repr=False)
class RanksRecord:
    """Programs by rank, and their differences.

    Attributes:
        ranks: rank of each program, in order.
        programs: the record of each process.
        differences: the differences, by level.
        not_compared: reasons why ranks may differ although no difference was observed.
        notes: remarks for the reader.
    """

    ranks: tuple[int, ...]
    programs: tuple[ProgramRecord, ...]
    differences: tuple[RankDifference, ...] = ()
    notes: tuple[str, ...] = ()
    not_compared: tuple[str, ...] = ()
