"""Memory budget of one graph: whether its live memory fits into the modelled device."""

from __future__ import annotations

from dataclasses import dataclass

from ..record.capture import Record
from ..record.memory import Buffer, Memory

FITS, MAY_FIT, DOES_NOT = "fits", "may not fit", "does not fit"

GIB = 2**30

_GB = 10**9

TANGENT = "tangents_"
"""AOTAutograd names the gradients of the results so."""


@dataclass(frozen=True)
class MemoryBudget:
    """Least memory that a graph needs on the device, and the memory that there is.

    Attributes:
        peak: what the graph reads and makes, at most at once.
        other_bytes: what the function and its arguments hold and the graph does not read, as far as is known.
        smallest_memory, largest_memory: the device's memory. Published are gigabytes, and it is not said whether of
            10^9 or of 2^30 bytes.

    Not counted are the optimizer's state and gradients that are not there yet, what other graphs keep for their
    backward, and what the driver, the libraries and the allocator take.
    """

    peak: int
    other_bytes: int
    smallest_memory: int
    largest_memory: int

    @property
    def needed_bytes(self) -> int:
        """At least so much."""
        return self.peak + self.other_bytes

    @property
    def verdict(self) -> str:
        """One of ``FITS``, ``MAY_FIT``, ``DOES_NOT``."""
        return (
            DOES_NOT
            if self.needed_bytes > self.largest_memory
            else MAY_FIT
            if self.needed_bytes > self.smallest_memory
            else FITS
        )


def memory_budget(capture: Record, held: Memory) -> MemoryBudget | None:
    """It, of one phase; ``None`` where no model says how much memory the device has, or the peak is not known."""
    target = capture.target
    total = target.model.figure("total_memory") if target is not None else None
    if target is None or held.peak is None or not isinstance(total, (int, float)):
        return None
    total = int(total)
    most = total // _GB * GIB if total % _GB == 0 else total
    return MemoryBudget(held.peak, max(0, (target.resident_bytes or 0) - _read(capture, held)), total, most)


def _read(capture: Record, held: Memory) -> int:
    """Bytes of the graph's inputs: at most so much of what was given is within its peak.

    A backward also reads what its forward computed, and the gradients of the results: none of that was given.
    """
    inputs = _inputs(held)
    if created := _handed_over(capture, held):
        inputs = [b for b in inputs if b.name not in created and not b.name.startswith(TANGENT)]
    return sum(b.nbytes or 0 for b in inputs)


def _handed_over(capture: Record, held: Memory) -> set[str]:
    """Nodes that a backward gets from its forward, and that are no part of the forward's own inputs."""
    for compilation in capture.compilations:
        if held.phase == "backward" and any(m is held for m in compilation.memory):
            given = {b.name for m in compilation.memory if m.phase == "forward" for b in _inputs(m)}
            kept = compilation.partition.saved if compilation.partition is not None else ()
            return {saved.node for saved in kept if saved.alias_of not in given}
    return set()


def _inputs(held: Memory) -> list[Buffer]:
    return [b for b in held.buffers if b.kind == "input" and not b.base]
