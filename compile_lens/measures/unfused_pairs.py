"""Pairs of groups that were not fused although they share data, and why: ``capture.why`` for neighbours.

These are pairs of final groups, not all pairs that the scheduler considered: one reads a buffer that the other writes,
or both read the same buffer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from compile_lens.measures.fusion import _Place
from compile_lens.measures.fusion_answer import NOT_FUSED, Why
from compile_lens.measures.members import Members
from compile_lens.measures.memo import memoized
from compile_lens.measures.user_words import A_PART
from compile_lens.record.capture import Record
from compile_lens.record.decision import Decision

BETWEEN = ("different indices", "different loops", "different sizes")
"""Reasons whose remedies change the program between the two groups."""

MAX_PAIRED = 6
"""Most groups reading one buffer that are all paired; of more, only neighbours are."""


@dataclass(frozen=True)
class UnfusedPair:
    """Two groups of one phase that were not fused; ``first`` runs before ``second``.

    ``follows`` is True if the second reads what the first writes; else both read the same buffer. ``why`` is the answer
    of ``capture.why``, ``template`` how to try a template instead of a library call, ``of_torch`` whether torch's own
    functions compute both, ``kernel`` the name of a kernel that contains both as separate loops.
    """

    compilation: str
    phase: str
    first: str
    second: str
    follows: bool
    why: Why
    template: str = ""
    of_torch: bool = False
    kernel: str = ""

    @property
    def remedy(self) -> str:
        """The remedy that the user can apply, ``""`` without one. In a backward, in torch's own code and between two
        loops of one call the user can only change settings."""
        remedy, call = self.why.remedy, self.why.common
        within = self.why.reason in BETWEEN and bool(call) and not call.startswith(A_PART)
        if (self.phase == "backward" or self.of_torch or within) and "torch._inductor.config" not in remedy:
            remedy = ""
        return remedy or self.template


@memoized
def unfused_pairs(capture: Record, cid: str, phase: str) -> tuple[UnfusedPair, ...]:
    """Return the pairs of one phase of one compilation, in run order.

    Pairs that nobody would expect in one kernel are left out: groups without work (views, allocations), and two that
    only read the same buffer while a library call is between them or is one of them.
    """
    place = _Place(capture, cid, phase)
    all_decisions = place.decisions
    decisions = _by_groups(place)
    pairs = []
    for first, second, follows in _neighbours(place):
        if "nop" in (place.groups[first].kind, place.groups[second].kind):
            continue
        # The decisions that `why` would select for these two, without a search of all.
        place.decisions = None if all_decisions is None else decisions.get(frozenset((first, second)), ())
        one, two = (_group(place, name) for name in (first, second))
        why = place.why(one, two)
        if why.verdict == NOT_FUSED and (follows or why.reason != "extern"):
            template = place.template_remedy(first, second) if follows and why.reason == "extern" else ""
            of_torch = _of_torch(place, first, second)
            kernel = next(iter(place.kernels_with([first], [second])), "")
            pairs.append(UnfusedPair(cid, phase, first, second, follows, why, template, of_torch, kernel))
    return tuple(pairs)


def all_unfused_pairs(capture: Record) -> tuple[UnfusedPair, ...]:
    """Return the pairs of every phase of every compilation."""
    return tuple(
        pair
        for compilation in capture.compilations
        for phase in compilation.phases
        if f"{phase}.groups" in compilation.graphs
        for pair in unfused_pairs(capture, compilation.id, phase)
    )


def _of_torch(place: _Place, *names: str) -> bool:
    """Return True if the lines of groups are known and all are torch's, as in an optimizer's step."""
    loops = [place.loops[m] for name in names for m in place.groups[name].members if m in place.loops]
    nodes = {name for loop in loops for name in loop.origins if name in place.aten}
    frames = [frame for name in nodes for frame in place.aten[name].frames]
    return bool(frames) and all(frame.of_torch for frame in frames)


def _group(place: _Place, name: str) -> Members:
    return Members(name, "node", {(place.cid, place.phase): place.groups[name].members})


def _by_groups(place: _Place) -> dict[frozenset[str], tuple[Decision, ...]]:
    """Return the decisions by the two final groups of their sides."""
    decisions: dict[frozenset[str], dict[int, Decision]] = {}
    for number, decision in enumerate(place.decisions or ()):
        ones = {place.group_of[loop] for loop in decision.a if loop in place.group_of}
        twos = {place.group_of[loop] for loop in decision.b if loop in place.group_of}
        for one in ones:
            for two in twos - {one}:
                decisions.setdefault(frozenset((one, two)), {})[number] = decision
    return {pair: tuple(of.values()) for pair, of in decisions.items()}


def _neighbours(place: _Place) -> Iterator[tuple[str, str, bool]]:
    """Yield pairs of groups that share data, and whether one reads what the other writes."""
    order = {name: number for number, name in enumerate(place.groups)}
    makers = place.buffers.makers
    pairs: dict[tuple[int, int], bool] = {}
    for read, every in place.buffers.readers.items():
        groups = sorted(every, key=order.__getitem__)
        if read in makers:
            for name in groups:
                if name != makers[read]:
                    pairs[_sorted(order[makers[read]], order[name])] = True
        near = len(groups) if len(groups) <= MAX_PAIRED else 2
        for at, one in enumerate(groups):
            for two in groups[at + 1 : at + near]:
                pairs.setdefault(_sorted(order[one], order[two]), False)
    names = list(place.groups)
    for (first, second), follows in sorted(pairs.items()):
        yield names[first], names[second], follows


def _sorted(one: int, two: int) -> tuple[int, int]:
    return (one, two) if one < two else (two, one)
