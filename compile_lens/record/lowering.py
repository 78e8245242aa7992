"""Lowering of one ATen node: inlined into the loops that read it, or given a buffer, and why; and the changes that
passes make to a graph before lowering.

Inlining is not fusion: it happens before scheduling. A pointwise node becomes a function of an index, and each reader
computes it in place, until something makes lowering *realise* it: give it a loop and a buffer of its own. A buffer need
not reach memory: if fusion joins the loop that writes it with every loop that reads it, the kernel may keep the value
in registers.
"""

from __future__ import annotations

from dataclasses import dataclass

from .decision import Reason

REALIZED: dict[str, Reason] = {
    "output": Reason("It is a result of the graph, so that it has to be in memory.", ""),
    "reduction": Reason(
        "It reduces, scans or sorts: each of its elements needs many of its input, so that computing it again "
        "for every reader would cost too much.",
        "",
    ),
    "extern": Reason(
        "A library call, a template or a Triton kernel of the program reads or writes it in memory.", ""
    ),
    "many readers": Reason(
        "It is read more than once, and its expression is too large to be computed again for each reader: it "
        "reads too many buffers, or has too many operations.",
        "Raise the limit that is named (an option of torch._inductor.config), and measure.",
    ),
    "heavy": Reason(
        "It is read more than once, and has an operation that Inductor does not compute again (on the CPU "
        "an exponential, say).",
        "",
    ),
    "many operations": Reason(
        "Its expression has grown too large to be inlined any further, even into one reader: it has too many "
        "operations.",
        "Raise the limit that is named, where it is an option of torch._inductor.config, and measure.",
    ),
    "many reads": Reason(
        "Its expression has grown too large to be inlined any further, even into one reader: it reads too many "
        "buffers.",
        "Raise the limit that is named (an option of torch._inductor.config), and measure.",
    ),
    "concat": Reason(
        "It is a piece of a concatenation, or the whole: each piece is written straight to its place.", ""
    ),
    "mutation": Reason("It overwrites memory, or the memory that it reads is overwritten later.", ""),
    "hint": Reason("The lowering of its own operator, or of one that reads it, requires it in memory.", ""),
    "layout": Reason("It has to be in memory with certain strides.", ""),
    "other": Reason("Inductor realised it at a place that this version does not know.", ""),
}
"""Reasons for giving a value a buffer, each with its sentence.

``many readers`` and ``heavy`` concern a value that is read more than once; ``many operations`` and ``many reads`` an
expression that is too large, however often it is read.
"""


@dataclass(frozen=True)
class Lowered:
    """Result of lowering one node of ``"<phase>.post_grad"`` that computes something.

    Attributes:
        phase: the graph that was being compiled.
        node: the node's name; in a subgraph of a higher-order operator with its path (``"true_graph_0/sin"``).
        loops: the loops of ``"<phase>.loops"`` that compute it or a part of it. Except for ``buffer`` and ``parts``,
            each recomputes it.
        buffer: the loop, or library call, that writes its value to a buffer; ``""``: its value was inlined and has no
            buffer.
        parts: loops that write only a part of it to buffers: its other results, intermediates of its lowering (the sum
            of a mean, the copy of an input in another layout), or a copy of it in another layout.
        reason: why there is ``buffer``, or else why there are ``parts``: a key of ``REALIZED``; ``""`` if it was
            inlined as a whole.
        evidence: the figures behind the reason, with the name of the limit.
        where: the place in torch that realised it (``torch/_inductor/graph.py:2121 in run_node``).
    """

    phase: str
    node: str
    loops: tuple[str, ...] = ()
    buffer: str = ""
    parts: tuple[str, ...] = ()
    reason: str = ""
    evidence: str = ""
    where: str = ""

    @property
    def inlined(self) -> tuple[str, ...]:
        """The loops into which it was inlined: they compute it without writing its value."""
        own = (self.buffer, *self.parts)
        return tuple(loop for loop in self.loops if loop not in own)

    @property
    def sentence(self) -> str:
        """The result of lowering in plain sentences."""
        reason = REALIZED.get(self.reason)
        why = reason.sentence if reason is not None else ""
        into = ", ".join(self.inlined)
        if self.buffer:
            also = f" {into} {_does(self.inlined)} it, or a part of it, too." if into else ""
            return f"Its value has a buffer, that of {self.buffer}. {why}{also}"
        if self.parts:
            rest = f" The rest was inlined into {into}." if into else ""
            return f"A part of it has a buffer, that of {', '.join(self.parts)}. {why}{rest}"
        return f"It was inlined into {into}: its value has no buffer."

    @property
    def remedy(self) -> str:
        """Remedy that might make Inductor inline it, ``""`` if none is known."""
        reason = REALIZED.get(self.reason)
        return reason.remedy if reason is not None else ""

    def __str__(self) -> str:
        text = f"{self.node}: {self.sentence}"
        text += f" Shown: {self.evidence}." if self.evidence else ""
        return text + (f" {self.where}" if self.where else "")


def _does(loops: tuple[str, ...]) -> str:
    return "computes" if len(loops) == 1 else "compute"


UNNAMED = "between named passes"
"""Name of a ``Pass`` for changes made while no named pass of torch was running."""

MERGING = "fx_graph_cse"
"""Name of the ``Pass`` in which AOTAutograd's partitioner merges calls that compute the same
(``torch/_functorch/partitioners.py``)."""


@dataclass(frozen=True)
class Rewrite:
    """One place where a pass changed the graph.

    Attributes:
        pattern: the pattern that matched, by its own name or as text; ``""`` if the pass uses none.
        before: names at that time of the nodes that were matched, removed or changed.
        after: names of the nodes that replace them: new, changed or existing ones (``x`` for ``x + 0``); empty if the
            nodes were only removed.
        before_text, after_text: the same nodes as text, one line each (``%name = op(args)``); in a long text the last
            line gives the number of omitted nodes.
        origins: names of nodes of the recorded stage before, from which those of ``before`` came.
        where: the place of the pattern or the pass in torch (``torch/…/file.py:12 in name``).
    """

    pattern: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    before_text: str = ""
    after_text: str = ""
    origins: tuple[str, ...] = ()
    where: str = ""


@dataclass(frozen=True)
class Pass:
    """One pass over a graph; passes are in run order.

    Attributes:
        stage: the stage that the passes lead to: ``"pre_grad"``, ``"forward"`` (for those over the joint
            graph; ``"inference"`` without a backward) or ``"<phase>.post_grad"``.
        name: the pass, by torch's own name; ``UNNAMED`` for changes that no named pass made.
        nodes_before, nodes_after: number of nodes of the graph.
        rewrites: its changes, in order; empty if it changed nothing.
        near_misses: patterns that nearly matched the graph after the pass, with the mismatch.
        nodes_reordered: number of nodes with another place in the order of execution.
        body: the subgraph of a higher-order operator that the pass ran over, ``""`` for the graph itself.
    """

    stage: str
    name: str
    nodes_before: int
    nodes_after: int
    rewrites: tuple[Rewrite, ...] = ()
    near_misses: tuple[str, ...] = ()
    nodes_reordered: int = 0
    body: str = ""
