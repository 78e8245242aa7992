"""Pairs of groups that stayed apart though they touch common data, and why: ``capture.why`` for neighbours.

Not every pair that the scheduler looked at on its way, but those of the groups that exist in the end: one writes
what the other reads, or both read the same.
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
"""Reasons whose remedies change what a program does between the two."""

CROWD = 6
"""Groups that read one buffer: where there are more, only neighbours among them are paired."""


@dataclass(frozen=True)
class UnfusedPair:
    """Two groups of one phase that stayed apart; ``first`` runs before ``second``.

    ``follows`` says whether the second reads what the first writes; else both read the same. ``why`` is what
    ``capture.why`` says of them, ``template`` how a template is tried in place of a library call that one of them is,
    ``of_torch`` whether torch's own functions compute both, ``kernel`` the name of one that holds both, each
    with a loop of its own.
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
        """The remedy that a program can follow, ``""`` without one: nobody writes a backward, what is torch's own, nor
        what stands between two loops of one call, so that there only a setting can be changed."""
        remedy, call = self.why.remedy, self.why.common
        within = self.why.reason in BETWEEN and bool(call) and not call.startswith(A_PART)
        if (self.phase == "backward" or self.of_torch or within) and "torch._inductor.config" not in remedy:
            remedy = ""
        return remedy or self.template


@memoized
def unfused_pairs(capture: Record, cid: str, phase: str) -> tuple[UnfusedPair, ...]:
    """The pairs of one phase of one compilation, in the order in which they run.

    Left out is what nobody would expect in one kernel: groups that do no work (views, memory set aside), and
    two that only read the same while a call of a library stands between them or is one of them.
    """
    place = _Place(capture, cid, phase)
    everything = place.decisions
    about = _by_groups(place)
    pairs = []
    for first, second, follows in _neighbours(place):
        if "nop" in (place.groups[first].kind, place.groups[second].kind):
            continue
        # What `why` would pick out of all decisions for these two, found without looking at all of them.
        place.decisions = None if everything is None else about.get(frozenset((first, second)), ())
        one, two = (_group(place, name) for name in (first, second))
        why = place.why(one, two)
        if why.verdict == NOT_FUSED and (follows or why.reason != "extern"):
            template = place.template_remedy(first, second) if follows and why.reason == "extern" else ""
            torchs = _of_torch(place, first, second)
            kernel = next(iter(place.kernels_with([first], [second])), "")
            pairs.append(UnfusedPair(cid, phase, first, second, follows, why, template, torchs, kernel))
    return tuple(pairs)


def all_unfused_pairs(capture: Record) -> tuple[UnfusedPair, ...]:
    """The pairs of every phase of every compilation."""
    return tuple(
        pair
        for compilation in capture.compilations
        for phase in compilation.phases
        if f"{phase}.groups" in compilation.graphs
        for pair in unfused_pairs(capture, compilation.id, phase)
    )


def _of_torch(place: _Place, *names: str) -> bool:
    """Return True if the lines of groups are known, and all of them are torch's, as in an optimizer's step."""
    loops = [place.loops[m] for name in names for m in place.groups[name].members if m in place.loops]
    nodes = {name for loop in loops for name in loop.origins if name in place.aten}
    frames = [frame for name in nodes for frame in place.aten[name].frames]
    return bool(frames) and all(frame.of_torch for frame in frames)


def _group(place: _Place, name: str) -> Members:
    return Members(name, "node", {(place.cid, place.phase): place.groups[name].members})


def _by_groups(place: _Place) -> dict[frozenset[str], tuple[Decision, ...]]:
    """The decisions by the two groups that their sides ended up in."""
    decisions: dict[frozenset[str], dict[int, Decision]] = {}
    for number, decision in enumerate(place.decisions or ()):
        ones = {place.of[loop] for loop in decision.a if loop in place.of}
        twos = {place.of[loop] for loop in decision.b if loop in place.of}
        for one in ones:
            for two in twos - {one}:
                decisions.setdefault(frozenset((one, two)), {})[number] = decision
    return {pair: tuple(of.values()) for pair, of in decisions.items()}


def _neighbours(place: _Place) -> Iterator[tuple[str, str, bool]]:
    """Pairs of groups that touch common data, and whether one reads what the other writes."""
    order = {name: number for number, name in enumerate(place.groups)}
    makers = place.buffers.makers
    pairs: dict[tuple[int, int], bool] = {}
    for read, every in place.buffers.readers.items():
        groups = sorted(every, key=order.__getitem__)
        if read in makers:
            for name in groups:
                if name != makers[read]:
                    pairs[_sorted(order[makers[read]], order[name])] = True
        near = len(groups) if len(groups) <= CROWD else 2
        for at, one in enumerate(groups):
            for two in groups[at + 1 : at + near]:
                pairs.setdefault(_sorted(order[one], order[two]), False)
    names = list(place.groups)
    for (first, second), follows in sorted(pairs.items()):
        yield names[first], names[second], follows


def _sorted(one: int, two: int) -> tuple[int, int]:
    return (one, two) if one < two else (two, one)
