"""What of two captures stands for each other: operations of the program, generated modules, kernels and their lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from compile_lens.record.capture import Record

from ..address import Address
from .kernel_text import hunks, lines
from .kernels import Work, paired, works
from .levels import phases_of
from .operators import node_differences
from .side import Side, matched

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
    """What of the first and of the second stands for each other.

    Attributes:
        nodes: Dynamo's nodes that are the same, as ``diff`` matches them.
        modules: the generated modules side by side.
        lowered: nodes of the graphs handed to Inductor, and of those that it lowers, that are the same.
        differ: of each side the nodes of the graphs handed to Inductor that the other has not, or has otherwise; the
            words are ``""`` for those that it has not.
    """

    nodes: tuple[tuple[Address, Address], ...]
    modules: tuple[Module, ...]
    lowered: tuple[tuple[Address, Address], ...] = ()
    differ: tuple[dict[Address, str], dict[Address, str]] = field(default_factory=lambda: ({}, {}))


def counterparts(a: Record, b: Record) -> Counterparts:
    """What of ``a`` and ``b`` stands for each other."""
    sides = Side(a), Side(b)
    pairs = phases_of(*sides)
    lowered: list[tuple[Address, Address]] = []
    differ: tuple[dict[Address, str], dict[Address, str]] = ({}, {})
    for keys in pairs:
        after = (f"{keys[0]}.post_grad", f"{keys[1]}.post_grad")
        lowered += (pair for some in (keys, after) for pair in _nodes(sides, some))
        for own, found in zip(differ, node_differences(sides, keys, matched(sides, keys))):
            own.update(found)
    for number, (side, own) in enumerate(zip(sides, differ)):
        known = {keys[number] for keys in pairs}
        own.update((i.address, "") for phase in side.phases if phase not in known for i in side.stage(phase))
    modules = [module for phases in pairs for module in _modules(sides, phases)]
    told = {place for module in modules for place in module.places}
    for number, side in enumerate(sides):
        for phase in side.phases:
            for place in dict.fromkeys((c.id, phase) for c, _, _ in side.kernels(phase)):
                if place not in told:
                    modules.append(_alone(number, place, side))
    nodes = tuple(_nodes(sides, ("dynamo", "dynamo")))
    return Counterparts(nodes, tuple(modules), tuple(lowered), differ)


def _nodes(sides: tuple[Side, Side], keys: tuple[str, str]) -> Iterator[tuple[Address, Address]]:
    """The nodes of a stage of each that are the same."""
    a, b = (side.stage(key) for side, key in zip(sides, keys))
    return ((a[one].address, b[two].address) for one, two in matched(sides, keys).pairs.items())


def _alone(number: int, place: Place, side: Side) -> Module:
    kernels = [kernel for c, _, kernel in side.kernels(place[1]) if c.id == place[0]]
    own = {(k.name, n): "" for k in kernels for n in range(1, len(k.source.splitlines()) + 1)}
    if number == 0:
        return Module((place, None), (own, {}), tuple((k.name, None) for k in kernels))
    return Module((None, place), ({}, own), tuple((None, k.name) for k in kernels))


def _modules(sides: tuple[Side, Side], phases: tuple[str, str]) -> Iterator[Module]:
    """Modules of a phase, each beside the one that holds most of its kernels."""
    ones, twos = (works(side, phase) for side, phase in zip(sides, phases))
    found = matched(sides, (f"{phases[0]}.post_grad", f"{phases[1]}.post_grad"))
    same = paired(ones, twos, found.pairs)
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
    for cid in left:
        other = beside.get(cid)
        places = (cid, phases[0]), None if other is None else (other, phases[1])
        kernels = tuple(_partners(ones, twos, same, cid, other))
        yield Module(places, (own[0].get(cid, {}), own[1].get(other or "", {})), kernels)
    for cid in free:
        kernels = tuple(_partners(ones, twos, same, None, cid))
        yield Module((None, (cid, phases[1])), ({}, own[1].get(cid, {})), kernels)


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
    """Of each side by compile id the lines of its kernels that the other lacks."""
    own: tuple[dict[str, Own], dict[str, Own]] = ({}, {})
    for one, two in same.items():
        texts = lines(ones[one].kernel), lines(twos[two].kernel)
        for hunk in hunks(*texts):
            for side, work in enumerate((ones[one], twos[two])):
                for n, number in enumerate(hunk[side]):
                    other = hunk[1 - side]
                    words = texts[1 - side][other[n]].strip() if n < len(other) else ""
                    own[side].setdefault(work.cid, {})[work.kernel.name, number + 1] = words
    taken = (set(same), set(same.values()))
    for side, some in enumerate((ones, twos)):
        for number, work in enumerate(some):
            if number not in taken[side]:
                mine = own[side].setdefault(work.cid, {})
                mine.update(
                    {(work.kernel.name, n): "" for n in range(1, len(work.kernel.source.splitlines()) + 1)}
                )
    return own
