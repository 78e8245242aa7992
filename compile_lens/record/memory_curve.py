"""Memory of one call by ``activation_memory_budget``, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .graph import Frame

DEFAULT = 1.0
"""The budget that torch has by default: the partitioner saves what it likes."""


@dataclass(frozen=True)
class MemoryPoint:
    """The call captured with one budget. Bytes are modelled; ``None`` if they are not known.

    Attributes:
        budget: ``torch._functorch.config.activation_memory_budget``, from 0 to 1.
        saved: bytes saved for the backward beside inputs and results.
        forward, backward: bytes live at the peak of each.
        moved: bytes moved, forward and backward.
        launches: launches, forward and backward.
        recomputed: how many operators of the forward the backward computes again.
        lines: the calls that they came from.
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
    """Points by budget, the largest budget first.

    Attributes:
        function: its name.
        target: the target that the code is for; ``""`` for this machine.
        points: one for each budget.
    """

    function: str
    target: str = ""
    points: tuple[MemoryPoint, ...] = ()

    @property
    def default(self) -> MemoryPoint | None:
        """The point of torch's default; ``None`` if it was not captured."""
        return next((point for point in self.points if point.budget == DEFAULT), None)

    @property
    def best(self) -> MemoryPoint | None:
        """The point with the lowest peak, of several the one with the largest budget; ``None`` if none is known."""
        known = [point for point in self.points if point.peak is not None]
        return min(known, key=lambda point: point.peak or 0) if known else None

    @property
    def rises(self) -> tuple[MemoryPoint, ...]:
        """Points with a higher peak than the next larger budget has: the curve does not fall there."""
        pairs = zip(self.points, self.points[1:])
        return tuple(b for a, b in pairs if a.peak is not None and b.peak is not None and b.peak > a.peak)

    def to_dict(self) -> dict[str, Any]:
        """The points as plain JSON data."""
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
