"""Values at the kernels of a call: those stored by the generated code, compared with the graph before Inductor's
passes, run in its own types and in float64."""

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
"""Outcomes of a comparison. ``differs``: off by more than rounding; ``follows``: the same, but computed from such a
value; ``nearer to float64``: off from eager, but closer to float64 than eager; ``rounding``: as far off as eager from
itself on inputs one unit in the last place apart; ``order of equal elements``: torch does not promise the order."""

IN_REGISTERS, REMOVED, NOT_COMPARED = "in registers", "removed", "not compared"
"""Outcomes of values that were not compared: no kernel stores it, the passes removed its node, or another reason."""

COMPARED = (AGREES, DIFFERS, FOLLOWS, NEARER, ROUNDING, TIES)


@dataclass(frozen=True)
class KernelValue:
    """One value of the graph before Inductor's passes, with its comparison.

    Attributes:
        node: its node in that graph.
        outcome: one of ``COMPARED``, ``IN_REGISTERS``, ``REMOVED`` or ``NOT_COMPARED``.
        phase: the code that stores it: ``inference``, ``forward`` or ``backward``; ``""`` if none does.
        call, run: number of the call of the function, and of the run of this code, from 0: the first in which it
            differs, else the first of all.
        frames: the Python line of the node, the innermost that is not torch's own; empty if it has none.
        buffer, kernel: the buffer that contains it, and the kernel that writes the buffer.
        launch_line: line of the wrapper module that launches the kernel; 0 if not known.
        kernel_line: last line of the kernel's source that computes this node; 0 if not known.
        eager, compiled: error of each side against float64: norm of the difference, divided by the norm of the
            float64 value.
        eager_ulps, compiled_ulps: largest error of an element, in units in the last place of its type; None for types
            without these.
        eager_special, compiled_special: number of elements that are NaN or infinite.
        first_special: the first position where one side has such an element and the other another number.
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
        """True if the value was compared."""
        return self.outcome in COMPARED


@dataclass(frozen=True)
class GraphValues:
    """The values of one graph, in program order: the forward's before the backward's.

    Attributes:
        compile_id: the compilation.
        function: the function that was compiled; after a graph break, Dynamo's name of the resume function.
        missing: why none of its values was compared.
    """

    compile_id: str
    values: tuple[KernelValue, ...] = ()
    function: str = ""
    missing: str = ""

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> GraphValues:
        """Return the values from the output of ``dataclasses.asdict``."""
        values = [
            {**one, "shape": tuple(one["shape"]), "frames": tuple(Frame(**f) for f in one["frames"])}
            for one in data["values"]
        ]
        return cls(**{**data, "values": tuple(KernelValue(**one) for one in values)})

    def count(self, *outcomes: str) -> int:
        """Return the number of values with one of the given outcomes."""
        return sum(value.outcome in outcomes for value in self.values)

    def before(self, first: KernelValue) -> tuple[KernelValue, ...]:
        """Return the values before ``first``, in program order."""
        return self.values[: self.values.index(first)]
