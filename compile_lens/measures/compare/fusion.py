"""What is one kernel on some targets and several on others, and why it stayed apart there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from compile_lens.measures.compare.target import Launch, Line, Side
from compile_lens.measures.diff.side import Named
from compile_lens.measures.neighbours import Apart, apart
from compile_lens.record.comparison import Fact

FEW = 6
"""Pairs of kernels that are told one by one for a line and a target."""

Told = tuple[str, str, tuple[Fact, ...]]
"""Kind, sentence and facts."""

_Texts = dict[str, dict[str, str]]
"""What is said of each target, each once, and how it goes on."""


def joined(sides: Sequence[Side], line: Line) -> Iterator[Told]:
    """Loops of a line that stayed apart on some targets, while others fuse them or have them in one kernel."""
    kernels: dict[tuple[str, ...], tuple[_Texts, _Texts]] = {}
    functions: dict[tuple[str, ...], tuple[_Texts, _Texts]] = {}
    for side in sides:
        for pair, one, two in _pairs(side, line):
            said = {
                other.target: text
                for other in sides
                if other is not side
                and (text := _fused(other, side, pair) if one is two else _one(other, side, line, one, two))
            }
            if not said:
                continue
            apart_on, joined_on = (functions if one is two else kernels).setdefault(tuple(said), ({}, {}))
            # Layers that repeat give the same words, and other buffers.
            apart_on.setdefault(side.target, {}).setdefault(_pair(pair, one, two), _reason(pair))
            for target, text in said.items():
                joined_on.setdefault(target, {})[text] = ""
    for where, (apart_on, joined_on) in kernels.items():
        yield (
            "fusion",
            f"What is one kernel on {listed(where)} is several on {listed(apart_on)}.",
            _facts(apart_on, joined_on),
        )
    for where, (apart_on, joined_on) in functions.items():
        yield (
            "fusion",
            f"Loops that are fused on {listed(where)} only share a function on {listed(apart_on)}, which saves a "
            "launch and no memory traffic.",
            _facts(apart_on, joined_on),
        )


def _facts(*found: _Texts) -> tuple[Fact, ...]:
    facts = []
    for texts_by_target in found:
        for target, texts in texts_by_target.items():
            facts += [Fact(target, f"{text}{more}") for text, more in list(texts.items())[:FEW]]
            facts += [Fact(target, f"and {len(texts) - FEW} more")] if len(texts) > FEW else []
    return tuple(facts)


def _pairs(side: Side, line: Line) -> Iterator[tuple[Apart, Launch, Launch]]:
    """Groups that stayed apart, in launches of which at least one computes something of the line."""
    for c in side.capture.compilations:
        if f"{side.phase}.groups" not in c.graphs:
            continue
        for pair in apart(side.capture, c.id, side.phase):
            one = side.launch_of.get((c.id, pair.first))
            two = side.launch_of.get((c.id, pair.second))
            if one is not None and two is not None and (line in side.lines(one) or line in side.lines(two)):
                yield pair, one, two


def _one(other: Side, side: Side, line: Line, one: Launch, two: Launch) -> str:
    """How one launch of another target does something of both of two launches here; ``""`` if none does."""
    ones, twos = _theirs(side, other, one.nodes - two.nodes), _theirs(side, other, two.nodes - one.nodes)
    for launch in dict.fromkeys(found for node in ones for found in other.launched.get(node, ())):
        if launch.nodes & twos:
            return f"{_name(launch)} does both{_how(other, launch)}"
    # Where other operators stand there, all that can be said is that the whole line is one kernel.
    works = other.works_of(line)
    launches = [launch for launch in other.launches if line in other.lines(launch)]
    if (
        len(works) == len(launches) == 1
        and not (launches[0].work.called or one.work.called or two.work.called)
        and line in side.lines(one)
        and line in side.lines(two)
        and side.lowered_operators(line) != other.lowered_operators(line)
    ):
        return f"{_name(launches[0])} does the whole line{_how(other, launches[0])}"
    return ""


def _fused(other: Side, side: Side, pair: Apart) -> str:
    """How another target fuses two groups that only share a function here; ``""`` if it does not."""
    first, second = (side.nodes_of(pair.cid, group) for group in (pair.first, pair.second))
    first, second = _theirs(side, other, first - second), _theirs(side, other, second - first)
    for launch in dict.fromkeys(found for node in first for found in other.launched.get(node, ())):
        for group in launch.groups:
            theirs = other.nodes_of(launch.work.compilation, group)
            if theirs & first and theirs & second:
                return f"{_name(launch)} fuses both"
    return ""


def _theirs(side: Side, other: Side, nodes: Iterable[Named]) -> set[Named]:
    """What nodes of one target are on another, where that is known."""
    same = side.same_as(other)
    return {same[n] for n in nodes if n in same}


def _pair(pair: Apart, one: Launch, two: Launch) -> str:
    if one is two:
        return f"{_name(one)} runs loops one after the other: "
    return f"{_name(one)} and {_name(two)} stayed apart: "


def _reason(pair: Apart) -> str:
    why = pair.why
    if not why.decisions or why.reason == "never proposed":
        return " ".join((why.sentence, *(f"({fact})" for fact in why.facts[-1:])))
    shown = why.decisions[0].shown
    return f"{why.sentence}{f' Shown: {shown}.' if shown else ''}"


def _how(side: Side, launch: Launch) -> str:
    if len(launch.groups) > 1:
        return f", as {len(launch.groups)} loops in one function, which saves launches and no memory traffic"
    members = [m for g in launch.groups for m in side.members(launch.work.compilation, g)]
    if len(members) > 1:
        return f", {len(members)} loops fused into one"
    return ", in one loop" if members else ""


def _name(launch: Launch) -> str:
    return launch.work.called or launch.work.kernel.name


def listed(names: Iterable[str]) -> str:
    """Names with commas and an *and*."""
    *most, last = tuple(names) or ("none",)
    return f"{', '.join(most)} and {last}" if most else last
