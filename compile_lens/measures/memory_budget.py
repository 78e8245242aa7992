"""Memory budget of one graph: whether its live memory fits into the modelled device."""

from __future__ import annotations

from dataclasses import dataclass

from ..record.capture import Record
from ..record.memory import Buffer, Memory

FITS, MAY_FIT, DOES_NOT = "fits", "may not fit", "does not fit"

GIB = 2**30

_GB = 10**9

TANGENT = "tangents_"
"""Prefix of AOTAutograd's names for the gradients of the results."""


@dataclass(frozen=True)
class MemoryBudget:
    """Least memory in bytes that a graph needs on the device, and the device's memory.

    Attributes:
        peak: inputs and results of the graph that are live at once, at most.
        other_bytes: memory of the function and its arguments that the graph does not read, as far as known.
        smallest_memory, largest_memory: the device's memory. Vendors publish gigabytes without saying whether these are
            10^9 or 2^30 bytes.

    Not counted are the optimizer's state and gradients that do not exist yet, tensors that other graphs save for their
    backward, and the memory of the driver, the libraries and the allocator.
    """

    peak: int
    other_bytes: int
    smallest_memory: int
    largest_memory: int

    @property
    def needed_bytes(self) -> int:
        """Lower bound of the memory needed, in bytes."""
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


def memory_budget(capture: Record, memory: Memory) -> MemoryBudget | None:
    """Return the budget of one phase; ``None`` if the device's memory or the peak is not known."""
    target = capture.target
    total = target.model.figure("total_memory") if target is not None else None
    if target is None or memory.peak is None or not isinstance(total, (int, float)):
        return None
    total = int(total)
    largest = total // _GB * GIB if total % _GB == 0 else total
    return MemoryBudget(
        memory.peak, max(0, (target.resident_bytes or 0) - _read(capture, memory)), total, largest
    )


def _read(capture: Record, memory: Memory) -> int:
    """Return the bytes of the graph's inputs, the most of the caller's memory that the peak can include.

    A backward also reads tensors of its forward and the gradients of the results, which are not the caller's.
    """
    inputs = _inputs(memory)
    if created := _from_forward(capture, memory):
        inputs = [b for b in inputs if b.name not in created and not b.name.startswith(TANGENT)]
    return sum(b.nbytes or 0 for b in inputs)


def _from_forward(capture: Record, memory: Memory) -> set[str]:
    """Return the nodes that a backward receives from its forward, without the forward's own inputs."""
    for compilation in capture.compilations:
        if memory.phase == "backward" and any(m is memory for m in compilation.memory):
            given = {b.name for m in compilation.memory if m.phase == "forward" for b in _inputs(m)}
            kept = compilation.partition.saved if compilation.partition is not None else ()
            return {saved.node for saved in kept if saved.alias_of not in given}
    return set()


def _inputs(memory: Memory) -> list[Buffer]:
    return [b for b in memory.buffers if b.kind == "input" and not b.base]
