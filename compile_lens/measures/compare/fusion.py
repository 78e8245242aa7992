"""Loops that are one kernel on some targets and several on others, and why they are not fused there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from compile_lens.measures.compare.target import Launch, Line, TargetPhase
from compile_lens.measures.diff.side import Named
from compile_lens.measures.fusion_answer import NEVER_PROPOSED, NOT_SEEN
from compile_lens.measures.unfused_pairs import UnfusedPair, unfused_pairs
from compile_lens.record.comparison import Fact
from compile_lens.record.messages import all_names

MAX_LISTED = 6
"""Pairs of kernels that are listed one by one for a line and a target."""

Reason = tuple[str, str, tuple[Fact, ...]]
"""Kind, sentence and facts of a difference."""

_Texts = dict[str, dict[str, str]]
"""By target, its distinct sentences, each with its continuation."""


def fusion(targets: Sequence[TargetPhase], line: Line) -> Iterator[Reason]:
    """Yield loops of a line that are not fused on some targets, while others fuse them or run them in one kernel."""
    kernels: dict[tuple[str, ...], tuple[_Texts, _Texts]] = {}
    functions: dict[tuple[str, ...], tuple[_Texts, _Texts]] = {}
    for target in targets:
        for pair, one, two in _pairs(target, line):
            elsewhere = {
                other.target: text
                for other in targets
                if other is not target
                and (
                    text := _fused(other, target, pair)
                    if one is two
                    else _kernel_of_both(other, target, line, one, two)
                )
            }
            if not elsewhere:
                continue
            separate, together = (functions if one is two else kernels).setdefault(tuple(elsewhere), ({}, {}))
            # Repeated layers give the same sentence with other buffers.
            separate.setdefault(target.target, {}).setdefault(_pair_text(one, two), _reason(pair))
            for name, text in elsewhere.items():
                together.setdefault(name, {})[text] = ""
    for where, (separate, together) in kernels.items():
        yield (
            "fusion",
            f"What is one kernel on {all_names(where)} is several on {all_names(separate)}.",
            _facts(separate, together),
        )
    for where, (separate, together) in functions.items():
        yield (
            "fusion",
            f"Loops that are fused on {all_names(where)} only share a function on {all_names(separate)}, which saves a "
            "launch and no memory traffic.",
            _facts(separate, together),
        )


def _facts(*parts: _Texts) -> tuple[Fact, ...]:
    facts = []
    for texts_by_target in parts:
        for target, texts in texts_by_target.items():
            facts += [Fact(target, f"{text}{more}") for text, more in list(texts.items())[:MAX_LISTED]]
            facts += [Fact(target, f"and {len(texts) - MAX_LISTED} more")] if len(texts) > MAX_LISTED else []
    return tuple(facts)


def _pairs(target: TargetPhase, line: Line) -> Iterator[tuple[UnfusedPair, Launch, Launch]]:
    """Yield groups that are not fused, in launches of which at least one computes something of the line."""
    for c in target.capture.compilations:
        if f"{target.phase}.groups" not in c.graphs:
            continue
        for pair in unfused_pairs(target.capture, c.id, target.phase):
            one = target.launch_of.get((c.id, pair.first))
            two = target.launch_of.get((c.id, pair.second))
            if (
                one is not None
                and two is not None
                and (line in target.lines(one) or line in target.lines(two))
            ):
                yield pair, one, two


def _kernel_of_both(other: TargetPhase, target: TargetPhase, line: Line, one: Launch, two: Launch) -> str:
    """Describe the launch of another target that does work of both launches here; ``""`` if there is none."""
    ones = _matched_nodes(target, other, one.nodes - two.nodes)
    twos = _matched_nodes(target, other, two.nodes - one.nodes)
    for launch in dict.fromkeys(own for node in ones for own in other.launched.get(node, ())):
        if launch.nodes & twos:
            return f"{launch.name} does both{_how_joined(other, launch)}"
    # With other operators there, only the whole line can be called one kernel.
    works = other.works_of(line)
    launches = [launch for launch in other.launches if line in other.lines(launch)]
    if (
        len(works) == len(launches) == 1
        and not (launches[0].work.called or one.work.called or two.work.called)
        and line in target.lines(one)
        and line in target.lines(two)
        and target.lowered_operators(line) != other.lowered_operators(line)
    ):
        return f"{launches[0].name} does the whole line{_how_joined(other, launches[0])}"
    return ""


def _fused(other: TargetPhase, target: TargetPhase, pair: UnfusedPair) -> str:
    """Describe the launch of another target that fuses two groups that only share a function here; ``""`` if none."""
    ones, twos = (target.nodes_of(pair.compilation, group) for group in (pair.first, pair.second))
    ones, twos = _matched_nodes(target, other, ones - twos), _matched_nodes(target, other, twos - ones)
    for launch in dict.fromkeys(own for node in ones for own in other.launched.get(node, ())):
        for group in launch.groups:
            nodes = other.nodes_of(launch.work.compilation, group)
            if nodes & ones and nodes & twos:
                return f"{launch.name} fuses both"
    return ""


def _matched_nodes(target: TargetPhase, other: TargetPhase, nodes: Iterable[Named]) -> set[Named]:
    """Return the counterparts of nodes on another target, where known."""
    same = target.same_as(other)
    return {same[n] for n in nodes if n in same}


def _pair_text(one: Launch, two: Launch) -> str:
    if one is two:
        return f"{one.name} runs loops one after the other: "
    return f"{one.name} and {two.name} are not fused: "


def _reason(pair: UnfusedPair) -> str:
    why = pair.why
    if not why.decisions or why.reason in (NEVER_PROPOSED, NOT_SEEN):
        return " ".join((why.sentence, *(f"({fact})" for fact in why.facts[-1:])))
    shown = why.decisions[0].evidence
    return f"{why.sentence}{f' Shown: {shown}.' if shown else ''}"


def _how_joined(target: TargetPhase, launch: Launch) -> str:
    if len(launch.groups) > 1:
        return f", as {len(launch.groups)} loops in one function, which saves launches and no memory traffic"
    members = [m for g in launch.groups for m in target.members(launch.work.compilation, g)]
    if len(members) > 1:
        return f", {len(members)} loops fused into one"
    return ", in one loop" if members else ""
