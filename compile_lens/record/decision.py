"""Decisions of Inductor's scheduler whether to fuse two nodes, with reasons in plain words.

Inductor fuses in rounds. In each it proposes pairs of nodes that share a buffer, refuses those that must not or need
not be fused, ranks the rest, and fuses the best first. A fused node is proposed again in the next round. *Inlining*
during lowering comes before all this and is not fusion.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Reason:
    """Reason why a pair was not fused, for a learner: a sentence, and a remedy to try.

    Only remedies whose effect a test shows are listed.
    """

    sentence: str
    remedy: str = ""


REASONS: dict[str, Reason] = {
    "extern": Reason(
        "One of the two is a call of a library or of a kernel written by hand: Inductor did not generate its "
        "loop, so it cannot add to it."
    ),
    "steering": Reason(
        "One of the two decides which graphs run, or how often (cond, while_loop): their loops are generated "
        "separately, and nothing outside is fused with them."
    ),
    "nop": Reason(
        "One of the two does no work of its own (a view, reserved memory, one result of a library call, a number "
        "that is checked): there is no loop to fuse."
    ),
    "order": Reason("They were tried the wrong way round: the second must run before the first."),
    "different devices": Reason("They run on different devices, and one kernel runs on one device."),
    "stream": Reason("They run on different streams, or in different memory pools."),
    "different sizes": Reason(
        "They loop over different numbers of elements, and one loop runs a fixed number of times.",
        "Give both the same shape, if the data allows it.",
    ),
    "different loops": Reason(
        "They loop over equally many elements, but in loops that are nested or split differently.",
        "Keep one layout and one shape through both (no reshape or transpose in between).",
    ),
    "reduction sizes": Reason(
        "At least one of the two reduces, and the loops around and inside the reduction do not fit the other's."
    ),
    "reduction barrier": Reason(
        "The second needs finished results of a reduction, and the first has them only after its loop has run.",
        "Reduce over the last dimension, so that each row is finished before the next. Data that lies in another order "
        "has to be transposed first, which moves all of it once more.",
    ),
    "split reduction": Reason(
        "They are two steps of one reduction, which Inductor split so that more of the device works at once: the "
        "second adds up what all of the first has left.",
        "Set torch._inductor.config.split_reductions = False for one loop, and measure: it may be slower.",
    ),
    "outer loop": Reason(
        "One of the two already shares only its outer loop with others, and the C++ backend adds no "
        "independent work to such a node."
    ),
    "no shared data": Reason(
        "They have no data in common, so that fusing them would save no memory traffic."
    ),
    "little shared data": Reason(
        "They have so little data in common that Inductor does not think it worth it.",
        "Lower torch._inductor.config.score_fusion_memory_threshold, and measure.",
    ),
    "different indices": Reason(
        "Both touch a buffer, but in the same step of the loop not the same elements of it, or in another order.",
        "Let both take the same elements in the same order: no slice, shift, gather, reshape or transpose between "
        "the two, and reductions over the same dimensions.",
    ),
    "between": Reason("Something that needs the first, and that the second needs, has to run between them."),
    "cycle": Reason(
        "Fused, each would have to wait for the other: what was fused before leads from one back to the "
        "other."
    ),
    "too large": Reason(
        "The kernel would become too large: more loops or buffers than Inductor's limit allows.",
        "Raise the limit (max_fusion_size, cpp.max_horizontal_fusion_size, max_fusion_unique_io_buffers), "
        "and measure.",
    ),
    "peak memory": Reason(
        "Fused, tensors would have to live longer, and more memory would be needed at once."
    ),
    "mutation": Reason(
        "One of the two overwrites, or adds up in place, a buffer that the other reads: all of one has to "
        "be done before the other."
    ),
    "template": Reason(
        "One of the two is a template (a hand-tuned matrix product, convolution or attention), which "
        "takes in only certain pointwise work."
    ),
    "foreach": Reason(
        "One of the two is a list of operations that run together (foreach), whose members do not fit the "
        "other's."
    ),
    "scan": Reason("One of the two is a scan that is split over blocks, which takes in no reduction."),
    "tiling": Reason(
        "They want to cut their elements into differently shaped tiles, and one kernel has one shape."
    ),
    "combined reductions": Reason(
        "One of the two is already made of reductions in different orders, to which Inductor adds only "
        "some work."
    ),
    "numerics": Reason(
        "Fused, numbers would be added up in another order, and the settings require the order to stay."
    ),
    "config": Reason("A setting forbids it."),
    "slower": Reason(
        "Inductor tried it, and the fused kernel was slower, or used more registers than there are."
    ),
    "overtaken": Reason("It was allowed, but one of the two was fused with something better first."),
    "backend": Reason("It was refused by the backend, which gives no reason."),
    "unsaid": Reason("Inductor refused it without giving a reason."),
    "other": Reason("Inductor refused it, in words that this version does not know."),
}
"""Kinds of reasons, each with its sentence and remedy."""

CUSTOM_REMEDY = "Write the custom operator with ordinary PyTorch operators, which Inductor can fuse."
"""Remedy if a custom operator of the user prevents fusion."""


THROUGH_OTHERS = "They are in one kernel, since a third was fused with both."


@dataclass(frozen=True)
class Decision:
    """One pair of scheduler nodes that Inductor considered, with the outcome.

    Attributes:
        phase: the graph that was being compiled.
        a, b: the two nodes, each as the names of its loops in ``"<phase>.loops"``; ``a`` runs first if one needs the
            other.
        fused: whether the two ended up in one node, as this pair or with others.
        round: the round of fusion, from 1, in which the pair was last considered.
        reason: why this pair was not fused, a key of ``REASONS``; ``""`` if it was fused, or was allowed after others
            had already joined the two.
        torch_message: Inductor's own words, ``""`` if it gave none.
        evidence: the figures behind the reason (ranges, limits, buffers), read from the two nodes.
        where: the place in torch that refused (``torch/_inductor/scheduler.py:7492 in _can_fuse``).
        shared_bytes: bytes of the elements that both access, as Inductor counts them; ``None`` if the pair was
            decided before the count.
        score: Inductor's ranking of the pair, most important first: template, same kind, shared bytes
            (for torch 2.13 and later also bytes of buffers read by both), nearness; empty if not ranked.
        through_others: whether they are in one node although this pair was not fused: a third node was fused
            with both. ``reason`` and the other fields then describe the pair alone.
    """

    phase: str
    a: tuple[str, ...]
    b: tuple[str, ...]
    fused: bool
    round: int
    reason: str = ""
    torch_message: str = ""
    evidence: str = ""
    where: str = ""
    shared_bytes: int | None = None
    score: tuple[int, ...] = ()
    through_others: bool = False

    @property
    def loops(self) -> tuple[str, ...]:
        """The loops of both."""
        return (*self.a, *self.b)

    @property
    def sentence(self) -> str:
        """The decision in one plain sentence."""
        if self.fused:
            return THROUGH_OTHERS if self.through_others else "They were fused."
        reason = REASONS.get(self.reason)
        return reason.sentence if reason is not None else "Inductor refused it."

    @property
    def remedy(self) -> str:
        """Remedy that might fuse them, ``""`` if none is known. It depends on the reason alone; ``capture.why`` also
        checks whether it applies to the two nodes."""
        reason = REASONS.get(self.reason)
        return "" if self.fused or reason is None else reason.remedy

    def __str__(self) -> str:
        text = f"round {self.round}: {' + '.join(self.a)} and {' + '.join(self.b)}: "
        text += f"not fused ({self.reason}). {self.sentence}" if not self.fused else "fused"
        if self.through_others:
            alone = REASONS.get(self.reason)
            text += " through others" + (
                f"; as a pair not ({self.reason}). {alone.sentence}" if alone else ""
            )
        text += f" Shown: {self.evidence}." if self.evidence else ""
        text += f" Inductor: “{self.torch_message}”." if self.torch_message else ""
        return text + (f" {self.where}" if self.where else "")
