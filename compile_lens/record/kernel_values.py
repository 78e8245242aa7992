"""Values at the kernels of a call: those that the generated code stores, beside the same values of the graph before
Inductor's passes, in its own types and in float64."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .graph import Frame

AGREES, DIFFERS, FOLLOWS, NEARER, ROUNDING, TIES = (
    "agrees",
    "differs",
    "follows",
    "nearer to float64",
    "rounding",
    "order of equal elements",
)
"""Outcomes of a comparison: off by more than rounding explains, the same and computed from such a value, off from eager
and nearer to float64 than eager, as far off as eager is from itself on inputs one unit in the last place apart, and
dependent on an order that torch does not promise."""

IN_REGISTERS, REMOVED, NOT_COMPARED = "in registers", "removed", "not compared"
"""Values that were not compared: no kernel stores it, the passes left no node for it, or another reason."""

COMPARED = (AGREES, DIFFERS, FOLLOWS, NEARER, ROUNDING, TIES)


@dataclass(frozen=True)
class KernelValue:
    """One value of the graph before Inductor's passes, and the comparison of it.

    Attributes:
        node: its node in that graph.
        outcome: one of ``COMPARED``, ``IN_REGISTERS``, ``REMOVED`` or ``NOT_COMPARED``.
        phase: the code that stores it: ``inference``, ``forward`` or ``backward``; ``""`` where none does.
        call, run: number of the call of the function, and of the run of this code, from 0: the first in which it
            differs, else the first of all.
        frames: the Python line of the node, the innermost that is not torch's own; empty if it has none.
        buffer, kernel: the buffer that holds it, and the kernel that writes the buffer.
        launch_line: line of the wrapper module that launches the kernel; 0 if not known.
        kernel_line: last line of the kernel's source that is of this node; 0 if not known.
        eager, compiled: error of each side against float64: norm of the difference, divided by the norm of the
            float64 value.
        eager_ulps, compiled_ulps: largest error of an element, in units in the last place of its type; None for a type
            without.
        eager_special, compiled_special: how many elements are NaN or infinite.
        first_special: the first place where one side has such an element and the other another number.
        reason: why it was not compared.
    """

    node: str
    outcome: str
    phase: str = ""
    call: int = 0
    run: int = 0
    frames: tuple[Frame, ...] = ()
    dtype: str = ""
    shape: tuple[int, ...] = ()
    buffer: str = ""
    kernel: str = ""
    launch_line: int = 0
    kernel_line: int = 0
    eager: float | None = None
    compiled: float | None = None
    eager_ulps: float | None = None
    compiled_ulps: float | None = None
    eager_special: int = 0
    compiled_special: int = 0
    first_special: str = ""
    reason: str = ""

    @property
    def compared(self) -> bool:
        """True if both sides have it."""
        return self.outcome in COMPARED


@dataclass(frozen=True)
class GraphValues:
    """The values of one graph, in program order: of a graph with a backward, the forward's before the backward's.

    Attributes:
        compile_id: the compilation.
        function: the function that was compiled; of a piece after a graph break, Dynamo's name of the resume function.
        missing: why none of its values was compared.
    """

    compile_id: str
    values: tuple[KernelValue, ...] = ()
    function: str = ""
    missing: str = ""

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> GraphValues:
        """Return the values of ``dataclasses.asdict`` as they were."""
        values = [
            {**one, "shape": tuple(one["shape"]), "frames": tuple(Frame(**f) for f in one["frames"])}
            for one in data["values"]
        ]
        return cls(**{**data, "values": tuple(KernelValue(**one) for one in values)})

    def count(self, *outcomes: str) -> int:
        """Return how many of the values have one of some outcomes."""
        return sum(value.outcome in outcomes for value in self.values)

    def before(self, first: KernelValue) -> tuple[KernelValue, ...]:
        """Return the values before one, in program order."""
        return self.values[: self.values.index(first)]
