"""The parts of captures that stand for each other: nodes, generated modules, kernels and their lines.

Of a before and an after ``counterparts`` says which are the same, matched by structure; of captures of one program for
several targets ``OwnLines`` says which lines of a kernel no other target has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from compile_lens.record.capture import Record
from compile_lens.record.kernel import Kernel

from ..address import Address
from .kernels import Work, hunks, lines, paired, works
from .levels import phases_of
from .operators import node_differences
from .side import Named, Side, matched, of_one_program

Place = tuple[str, str]
"""A generated module: compile id and phase."""

Own = dict[tuple[str, int], str]
"""Lines that the other lacks, by kernel and number from 1, each with the other's that stands in its place or ``""``."""

Partners = tuple[tuple[str | None, str | None], ...]
"""Kernels by name that are the same, and ``None`` beside one that the other capture has not."""


@dataclass(frozen=True)
class Module:
    """A generated module of each, ``None`` where the other has none for it, and the lines that are its own.

    ``kernels`` are its kernels beside their partners; one whose partner is in another module is left out.
    """

    places: tuple[Place | None, Place | None]
    own: tuple[Own, Own]
    kernels: Partners = ()


@dataclass(frozen=True)
class Counterparts:
    """The parts of a first and a second capture that stand for each other.

    Attributes:
        nodes: Dynamo's nodes that are the same, as ``diff`` matches them.
        modules: the generated modules side by side.
        lowered: nodes of the graphs handed to Inductor, and of those that it lowers, that are the same.
        differ: the nodes of the graphs handed to Inductor, by side, that the other lacks (``""``) or has with a
            difference, which the words tell.
    """

    nodes: tuple[tuple[Address, Address], ...]
    modules: tuple[Module, ...]
    lowered: tuple[tuple[Address, Address], ...] = ()
    differ: tuple[dict[Address, str], dict[Address, str]] = field(default_factory=lambda: ({}, {}))


def counterparts(a: Record, b: Record) -> Counterparts:
    """The parts of ``a`` and ``b`` that stand for each other."""
    sides = Side(a), Side(b)
    pairs = phases_of(*sides)
    lowered: list[tuple[Address, Address]] = []
    differ: tuple[dict[Address, str], dict[Address, str]] = ({}, {})
    for keys in pairs:
        lowered += _nodes(sides, keys)
        lowered += _nodes(sides, (f"{keys[0]}.post_grad", f"{keys[1]}.post_grad"))
        for own, words in zip(differ, node_differences(sides, keys, matched(sides, keys))):
            own.update(words)
    for number, (side, own) in enumerate(zip(sides, differ)):
        known = {keys[number] for keys in pairs}
        own.update((i.address, "") for phase in side.phases if phase not in known for i in side.stage(phase))
    modules = [module for phases in pairs for module in _modules(sides, phases)]
    listed = {place for module in modules for place in module.places}
    for number, side in enumerate(sides):
        for phase in side.phases:
            for place in dict.fromkeys((c.id, phase) for c, _, _ in side.kernels(phase)):
                if place not in listed:
                    modules.append(_alone(number, place, side))
    return Counterparts(tuple(_nodes(sides, ("dynamo", "dynamo"))), tuple(modules), tuple(lowered), differ)


def _nodes(sides: tuple[Side, Side], keys: tuple[str, str]) -> Iterator[tuple[Address, Address]]:
    """The nodes of a stage of each that are the same."""
    a, b = (side.stage(key) for side, key in zip(sides, keys))
    return ((a[one].address, b[two].address) for one, two in matched(sides, keys).pairs.items())


def _alone(number: int, place: Place, side: Side) -> Module:
    kernels = [kernel for c, _, kernel in side.kernels(place[1]) if c.id == place[0]]
    own = {line: "" for kernel in kernels for line in _all_lines(kernel)}
    if number == 0:
        return Module((place, None), (own, {}), tuple((k.name, None) for k in kernels))
    return Module((None, place), ({}, own), tuple((None, k.name) for k in kernels))


def _modules(sides: tuple[Side, Side], phases: tuple[str, str]) -> Iterator[Module]:
    """Modules of a phase, each beside the one that holds most of its kernels."""
    ones, twos = (works(side, phase) for side, phase in zip(sides, phases))
    same = paired(ones, twos, matched(sides, (f"{phases[0]}.post_grad", f"{phases[1]}.post_grad")).pairs)
    shared = Counter((ones[one].cid, twos[two].cid) for one, two in same.items())
    beside: dict[str, str] = {}
    for (one, two), _ in shared.most_common():
        if one not in beside and two not in beside.values():
            beside[one] = two
    left, right = (list(dict.fromkeys(work.cid for work in some)) for some in (ones, twos))
    free = [cid for cid in right if cid not in beside.values()]
    for cid in left:
        if cid not in beside and cid in free:  # nothing of it is the same; at least its number is
            beside[cid] = cid
            free.remove(cid)
    own = _own(ones, twos, same)
    pairs: list[tuple[str | None, str | None]] = [(cid, beside.get(cid)) for cid in left]
    for one_id, two_id in (*pairs, *((None, cid) for cid in free)):
        yield Module(
            (
                None if one_id is None else (one_id, phases[0]),
                None if two_id is None else (two_id, phases[1]),
            ),
            (own[0].get(one_id or "", {}), own[1].get(two_id or "", {})),
            tuple(_partners(ones, twos, same, one_id, two_id)),
        )


def _partners(
    ones: list[Work], twos: list[Work], same: dict[int, int], left: str | None, right: str | None
) -> Iterator[tuple[str | None, str | None]]:
    """The kernels of two modules, by compile id, beside their partners."""
    taken = set(same.values())
    for number, work in enumerate(ones):
        if work.cid == left and number not in same:
            yield work.kernel.name, None
        elif work.cid == left and twos[same[number]].cid == right:
            yield work.kernel.name, twos[same[number]].kernel.name
    for number, work in enumerate(twos):
        if work.cid == right and number not in taken:
            yield None, work.kernel.name


def _own(ones: list[Work], twos: list[Work], same: dict[int, int]) -> tuple[dict[str, Own], dict[str, Own]]:
    """The lines of kernels that the other lacks, by side and compile id."""
    own: tuple[dict[str, Own], dict[str, Own]] = ({}, {})
    for one, two in same.items():
        texts = lines(ones[one].kernel), lines(twos[two].kernel)
        for hunk in hunks(*texts):
            for side, work in enumerate((ones[one], twos[two])):
                for n, number in enumerate(hunk[side]):
                    other = hunk[1 - side]
                    words = texts[1 - side][other[n]].strip() if n < len(other) else ""
                    own[side].setdefault(work.cid, {})[work.kernel.name, number + 1] = words
    for side, (some, taken) in enumerate(((ones, set(same)), (twos, set(same.values())))):
        for number, work in enumerate(some):
            if number not in taken:
                own[side].setdefault(work.cid, {}).update(dict.fromkeys(_all_lines(work.kernel), ""))
    return own


def _all_lines(kernel: Kernel) -> list[tuple[str, int]]:
    return [(kernel.name, n) for n in range(1, len(kernel.source.splitlines()) + 1)]


class OwnLines:
    """Lines of kernels that the other captures of one program lack; ``None`` is a capture that is not there."""

    def __init__(self, captures: Sequence[Record | None]) -> None:
        self._sides = [None if capture is None else Side(capture) for capture in captures]
        self._same: dict[tuple[int, int, str], dict[Named, Named]] = {}

    def of(self, compilation: str, phase: str) -> list[dict[Address, str]]:
        """For each capture the lines of its own in a module, each with the operators that it computes.

        A line counts if it has origins and none of these stands, as the same operator of the same Python line, in a
        kernel of another capture. A capture that is alone has none.
        """
        key = f"{phase}.post_grad"
        lines_of = [{} if side is None else _line_nodes(side, compilation, phase) for side in self._sides]
        every = [{node for nodes in own.values() for node in nodes} for own in lines_of]
        own_lines: list[dict[Address, str]] = []
        for number, own in enumerate(lines_of):
            others = [other for other, there in enumerate(lines_of) if other != number and there]
            shared = {
                one
                for other in others
                if own
                for one, two in self._matched(number, other, key).items()
                if two in every[other]
            }
            own_lines.append(
                {
                    address: ", ".join(sorted(set(nodes.values())))
                    for address, nodes in own.items()
                    if others and nodes and not shared & nodes.keys()
                }
            )
        return own_lines

    def _matched(self, one: int, two: int, key: str) -> dict[Named, Named]:
        """The nodes of one capture that are those of another; computed once for all modules of a phase."""
        a, b = self._sides[one], self._sides[two]
        if (one, two, key) not in self._same:
            self._same[one, two, key] = of_one_program(a, b, key) if a is not None and b is not None else {}
        return self._same[one, two, key]


def _line_nodes(side: Side, compilation: str, phase: str) -> Mapping[Address, dict[Named, str]]:
    """The nodes that each line of a module's kernels computes, with their operators."""
    key = f"{phase}.post_grad"
    stage, numbers = side.stage(key), side.numbers(key)
    return {
        (c.id, code.key, f"{kernel.name}:{line.line}"): {
            (c.id, name): stage[numbers[c.id, name]].node.target
            for name in line.origins
            if (c.id, name) in numbers
        }
        for c, code, kernel in side.kernels(phase)
        if c.id == compilation
        for line in kernel.lines
    }
