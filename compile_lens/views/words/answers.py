"""Answers about one kernel in a strip: what bounds it, why it is not fused with a neighbour, what to try."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from compile_lens.measures.address import Address
from compile_lens.measures.cost import cost
from compile_lens.measures.launch_accesses import size
from compile_lens.measures.memo import memoized
from compile_lens.measures.roofline import Bound, roofline
from compile_lens.measures.unfused_pairs import UnfusedPair, all_unfused_pairs
from compile_lens.record.capture import Record

from .quantities import bytes_in_short

WORTH = 0.01
"""Share of all bytes that a remedy must save, at most, to be named."""


@dataclass(frozen=True)
class Answer:
    """Answer about one kernel.

    ``parts`` are labels, ``""`` for none, each with a sentence; ``saved`` are the bytes that its remedy could save at
    most, 0 without one. ``against`` says for whom the remedy is where ``parts`` explain another pair, else ``""``.
    """

    parts: tuple[tuple[str, str], ...]
    saved: int = 0
    remedy: str = ""
    against: str = ""

    @property
    def gain(self) -> str:
        """The most that the remedy saves, in words."""
        return f"at most {bytes_in_short(self.saved)} less"


@memoized
def answers(capture: Record) -> Mapping[Address, Answer]:
    """The answers of the kernels of a capture. Calls that share a row of the list have the answer of all of them."""
    rows = cost(capture, "kernel").rows
    numbers = {address: row.order for row in rows for address in row.addresses}
    bounds: dict[Address, Bound] = {}
    for one in roofline(capture).bounds:
        cid = one.kernel.compilation or capture.compilations[0].id
        bounds[cid, f"{one.kernel.phase}.code", one.kernel.name] = one
    total = cost(capture, "kernel", "bytes").total
    neighbours: dict[int, dict[tuple[int, str], _Neighbour]] = {}
    for address, other, pair in _pairs(capture):
        if address not in numbers:
            continue
        number = 0 if other == address else numbers.get(other, 0)
        own = neighbours.setdefault(numbers[address], {})
        known = own.setdefault((number, pair.why.reason), _Neighbour(number, other, pair))
        saved = known.saved + (size(pair.why.saved) or 0)
        own[number, pair.why.reason] = replace(known, saved=saved, pairs=known.pairs + 1)
    return {
        address: _answer(bounds.get(address), list(neighbours.get(row, {}).values()), total)
        for address, row in numbers.items()
    }


@dataclass(frozen=True)
class _Neighbour:
    """A row of kernels with which a kernel is not fused, for one reason: in how many pairs, and what that moves."""

    number: int
    address: Address
    pair: UnfusedPair
    saved: int = 0
    pairs: int = 0

    @property
    def words(self) -> str:
        why = self.pair.why
        loops = " against ".join(filter(None, why.words))
        what = (
            f"with #{self.number} {short_name(self.address[2])}"
            if self.number
            else f"two loops in it{f', {loops}' if loops else ''}"
        )
        reason = why.sentence.rstrip(".")
        if why.reason == "extern" and why.calls:
            reason = f"{', '.join(dict.fromkeys(map(short_name, why.calls)))} is a library call"
        times = f" in {self.pairs} places" if self.pairs > 1 else ""
        saved = f" Would save at most {bytes_in_short(self.saved)}{times}." if self.saved else ""
        return f"{what}: {reason}.{saved}"


def _answer(bound: Bound | None, neighbours: list[_Neighbour], total: float) -> Answer:
    parts = []
    if bound is not None and bound.kernel.intensity is not None:
        kind = f"{bound.bound}-bound. ".capitalize() if bound.bound else ""
        rate = f"{bound.kernel.intensity:.3g} operations/B" if bound.kernel.intensity else "No arithmetic"
        parts.append(("", f"{kind}{rate}."))
    neighbours = sorted(neighbours, key=lambda one: -one.saved)
    if not neighbours:
        return Answer(tuple(parts))
    parts.append(("Not fused", neighbours[0].words))
    applicable = [one for one in neighbours if one.pair.remedy]
    remedy = next((one for one in applicable if one.saved >= max(1, WORTH * total)), None)
    if remedy is None:
        none = f"no remedy that applies saves {WORTH:.0%} of the bytes" if applicable else "no remedy applies"
        return Answer((*parts, ("Try", f"nothing here: {none}.")))
    against = ""
    if remedy is not neighbours[0]:
        against = f"against #{remedy.number}" if remedy.number else "for its two loops"
    answer = Answer(tuple(parts), remedy.saved, remedy.pair.remedy.rstrip("."), against)
    about = f"{against}, {answer.gain}: " if against else ""
    return replace(answer, parts=(*answer.parts, ("Try", f"{about}{answer.remedy}. Not timed here.")))


def _pairs(capture: Record) -> Iterator[tuple[Address, Address, UnfusedPair]]:
    """Each kernel with each other one with which a group of its is not fused."""
    kernels = {
        (compilation.id, phase, group): (compilation.id, code.key, kernel.name)
        for compilation in capture.compilations
        for phase, code in compilation.code.items()
        for kernel in code.kernels
        for group in kernel.groups
    }
    for pair in all_unfused_pairs(capture):
        first, second = (
            kernels.get((pair.compilation, pair.phase, group)) for group in (pair.first, pair.second)
        )
        if first is None or second is None:
            continue
        yield first, second, pair
        if first != second:
            yield second, first, pair


def short_name(name: str) -> str:
    """The name of a kernel without what all share: ``gelu_1`` of ``cpp_fused_gelu_1``, ``mm`` of
    ``extern_kernels.mm#2``."""
    return re.sub(r"^(cpp|triton_\w{3}|mps)_fused_(?=\D)|^extern_kernels\.|#\d+$", "", name)
