"""Memory of one call by ``activation_memory_budget``, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .graph import Frame

DEFAULT = 1.0
"""Torch's default budget: no limit on the partitioner."""


@dataclass(frozen=True)
class MemoryPoint:
    """The call captured with one budget. Bytes are modelled; ``None`` if they are not known.

    Attributes:
        budget: ``torch._functorch.config.activation_memory_budget``, from 0 to 1.
        saved: bytes saved for the backward besides inputs and results.
        forward, backward: bytes live at the peak of each.
        moved: bytes moved, forward and backward.
        launches: launches, forward and backward.
        recomputed: number of forward operators that the backward recomputes.
        lines: the calls that these operators came from.
        failure: why there is no capture with this budget; ``""`` if there is.
    """

    budget: float
    saved: int | None = None
    forward: int | None = None
    backward: int | None = None
    moved: int | None = None
    launches: int | None = None
    recomputed: int | None = None
    lines: tuple[Frame, ...] = ()
    failure: str = ""

    @property
    def peak(self) -> int | None:
        """The larger of the two peaks; ``None`` if one is not known."""
        return None if self.forward is None or self.backward is None else max(self.forward, self.backward)


@dataclass(frozen=True)
class MemoryCurveRecord:
    """Points by budget, largest budget first.

    Attributes:
        function: name of the function.
        target: the target of the code; ``""`` for this machine.
        points: one for each budget.
    """

    function: str
    target: str = ""
    points: tuple[MemoryPoint, ...] = ()

    @property
    def default(self) -> MemoryPoint | None:
        """The point of torch's default budget; ``None`` if it was not captured."""
        return next((point for point in self.points if point.budget == DEFAULT), None)

    @property
    def best(self) -> MemoryPoint | None:
        """The point with the lowest peak, of equal ones that with the largest budget; ``None`` if no peak is known."""
        known = [point for point in self.points if point.peak is not None]
        return min(known, key=lambda point: point.peak or 0) if known else None

    @property
    def rises(self) -> tuple[MemoryPoint, ...]:
        """Points with a higher peak than the next larger budget, where the curve rises instead of falling."""
        pairs = zip(self.points, self.points[1:])
        return tuple(b for a, b in pairs if a.peak is not None and b.peak is not None and b.peak > a.peak)

    def to_dict(self) -> dict[str, Any]:
        """Return the points as plain JSON data."""
        return {
            "function": self.function,
            "target": self.target,
            "points": [
                {
                    "budget": point.budget,
                    "saved": point.saved,
                    "peak": point.peak,
                    "forward": point.forward,
                    "backward": point.backward,
                    "moved": point.moved,
                    "launches": point.launches,
                    "recomputed": point.recomputed,
                    "lines": [frame.address for frame in point.lines],
                    "failure": point.failure,
                }
                for point in self.points
            ],
        }
