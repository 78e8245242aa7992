"""Counterparts between captures: nodes, generated modules, kernels and their lines.

``counterparts`` matches a before and an after by structure; ``OwnLines`` finds the kernel lines that only one of
several targets of a program has.
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
"""Lines that the other capture lacks, by kernel and number from 1, with the line in their place there, or ``""``."""

Partners = tuple[tuple[str | None, str | None], ...]
"""Pairs of matched kernel names; ``None`` for a kernel that the other capture lacks."""


@dataclass(frozen=True)
class Module:
    """A pair of generated modules, ``None`` for a missing one, with the lines that only one of them has.

    ``kernels`` are pairs of kernels; a kernel whose partner is in another module is left out.
    """

    places: tuple[Place | None, Place | None]
    own: tuple[Own, Own]
    kernels: Partners = ()


@dataclass(frozen=True)
class Counterparts:
    """Matched parts of a first and a second capture.

    Attributes:
        nodes: pairs of Dynamo's nodes, as ``diff`` matches them.
        modules: the generated modules side by side.
        lowered: pairs of nodes of the graphs handed to Inductor, and of the graphs that it lowers.
        differ: by side, nodes of the graphs handed to Inductor that the other lacks (``""``) or that differ, with the
            difference in words.
    """

    nodes: tuple[tuple[Address, Address], ...]
    modules: tuple[Module, ...]
    lowered: tuple[tuple[Address, Address], ...] = ()
    differ: tuple[dict[Address, str], dict[Address, str]] = field(default_factory=lambda: ({}, {}))


def counterparts(a: Record, b: Record) -> Counterparts:
    """Return the matched parts of ``a`` and ``b``."""
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
                    modules.append(_unmatched_module(number, place, side))
    return Counterparts(tuple(_nodes(sides, ("dynamo", "dynamo"))), tuple(modules), tuple(lowered), differ)


def _nodes(sides: tuple[Side, Side], keys: tuple[str, str]) -> Iterator[tuple[Address, Address]]:
    """Yield the matched nodes of a stage."""
    a, b = (side.stage(key) for side, key in zip(sides, keys))
    return ((a[one].address, b[two].address) for one, two in matched(sides, keys).pairs.items())


def _unmatched_module(number: int, place: Place, side: Side) -> Module:
    kernels = [kernel for c, _, kernel in side.kernels(place[1]) if c.id == place[0]]
    own = {line: "" for kernel in kernels for line in _all_lines(kernel)}
    if number == 0:
        return Module((place, None), (own, {}), tuple((k.name, None) for k in kernels))
    return Module((None, place), ({}, own), tuple((None, k.name) for k in kernels))


def _modules(sides: tuple[Side, Side], phases: tuple[str, str]) -> Iterator[Module]:
    """Yield the modules of a phase, each with the one that shares most of its kernels."""
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
        if cid not in beside and cid in free:  # no kernel matches, but the compile id does
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
    """Yield the kernels of two modules, given by compile id, with their partners."""
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
    """Return the kernel lines that the other capture lacks, by side and compile id."""
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
    """Kernel lines that the other captures of a program lack; ``None`` stands for a missing capture."""

    def __init__(self, captures: Sequence[Record | None]) -> None:
        self._sides = [None if capture is None else Side(capture) for capture in captures]
        self._same: dict[tuple[int, int, str], dict[Named, Named]] = {}

    def of(self, compilation: str, phase: str) -> list[dict[Address, str]]:
        """Return for each capture the lines of a module that only it has, with the operators that they compute.

        A line counts if it has origins and no kernel of another capture computes one of these (the same operator of
        the same Python line). A single capture has no such lines.
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
        """Return the counterparts of one capture's nodes in another; computed once for all modules of a phase."""
        a, b = self._sides[one], self._sides[two]
        if (one, two, key) not in self._same:
            self._same[one, two, key] = of_one_program(a, b, key) if a is not None and b is not None else {}
        return self._same[one, two, key]


def _line_nodes(side: Side, compilation: str, phase: str) -> Mapping[Address, dict[Named, str]]:
    """Return the nodes that each kernel line of a module computes, with their operators."""
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
