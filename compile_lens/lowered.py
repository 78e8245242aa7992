"""What lowering made of one ATen node: computed inside the loops that read it, or written to memory, and why.

This is *inlining*, and not fusion: it happens before there is a scheduler. A pointwise node becomes a function
of an index, and whoever reads the node computes it there and then, until something makes lowering *realise*
it: give it a loop and a buffer of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from .decision import Reason

REALISED: dict[str, Reason] = {
    "output": Reason("It is a result of the graph, so that it has to be in memory.", ""),
    "reduction": Reason(
        "It reduces, scans or sorts: each of its elements needs many of its input, so that computing it again "
        "for every reader would cost too much.",
        "",
    ),
    "extern": Reason(
        "A library call reads or writes it, and that needs it in memory.",
        "",
    ),
    "many readers": Reason(
        "It is read more often than Inductor is ready to compute it again.",
        "Raise torch._inductor.config.realize_reads_threshold, and measure.",
    ),
    "heavy": Reason(
        "It is read more than once, and costs too much to be computed again (an exponential, say).",
        "",
    ),
    "many operations": Reason(
        "The expression that it would be inlined into has too many operations.",
        "Raise torch._inductor.config.realize_opcount_threshold, and measure.",
    ),
    "many reads": Reason(
        "The expression that it would be inlined into reads too many buffers.",
        "Raise torch._inductor.config.realize_acc_reads_threshold, and measure.",
    ),
    "mutation": Reason("It overwrites memory, or the memory that it reads is overwritten later.", ""),
    "hint": Reason("The lowering of an operator that reads it asks for it in memory.", ""),
    "layout": Reason("It has to be in memory with certain strides.", ""),
    "other": Reason("Inductor realised it at a place that this version does not know.", ""),
}
"""Every kind of reason for a value to be written to memory, with its sentence."""


@dataclass(frozen=True)
class Lowered:
    """What became of one node of ``"<phase>.post_grad"``.

    Attributes:
        phase: the graph that was being compiled.
        node: the node's name.
        loops: the loops of ``"<phase>.loops"`` that compute it.
        buffer: the loop that writes its value to memory; ``""``: it was inlined, its value is never in memory.
        reason: a key of ``REALISED``; ``""`` if it was inlined.
        shown: the figures that the reason rests on, with the name of the limit.
        where: the place in torch that realised it.
    """

    phase: str
    node: str
    loops: tuple[str, ...] = ()
    buffer: str = ""
    reason: str = ""
    shown: str = ""
    where: str = ""

    @property
    def sentence(self) -> str:
        """What became of it, in one plain sentence."""
        if not self.buffer:
            return "It was inlined: each loop that reads it computes it." if self.loops else ""
        found = REALISED.get(self.reason)
        return found.sentence if found is not None else "It was written to memory."
