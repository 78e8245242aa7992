"""Answers about one kernel in a strip: what bounds it, why it is not fused with a neighbour, what to try."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from compile_lens.measures.address import Address
from compile_lens.measures.cost import SECONDS, cost
from compile_lens.measures.launch_accesses import size
from compile_lens.measures.memo import memoized
from compile_lens.measures.roofline import Bound, roofline
from compile_lens.measures.timing import seconds_text
from compile_lens.measures.unfused_pairs import UnfusedPair, all_unfused_pairs
from compile_lens.measures.written_attention import written_attention
from compile_lens.record.capture import Record
from compile_lens.record.comparison import place
from compile_lens.record.messages import all_names

from .attention import attention_by_lines, attention_place, attention_words
from .quantities import bytes_in_short

MIN_SAVED_SHARE = 0.01
"""Minimum share of all bytes that a remedy must be able to save to be named."""

MAX_NEIGHBOURS, MAX_NAME_CHARACTERS = 3, 20
"""Maximum listed neighbours with the same reason, and maximum characters of a name."""


@dataclass(frozen=True)
class Answer:
    """Answer about one kernel.

    ``parts`` are pairs of label (``""`` for none) and sentence; ``saved`` are the bytes that the remedy could save, 0
    without a remedy, and ``gain`` is that in words. If ``parts`` explain another pair, ``against`` or ``loops`` names
    the subject of the remedy: another kernel, or loops of this one; otherwise both are ``""``. ``place`` are the lines
    of the answer if these are more than the kernel's.
    """

    parts: tuple[tuple[str, str], ...]
    saved: int = 0
    remedy: str = ""
    against: str = ""
    loops: str = ""
    place: str = ""
    gain: str = ""

    @property
    def short_remedy(self) -> str:
        """Return the remedy without its explanation."""
        return _EXPLAINED.split(self.remedy)[0]


_EXPLAINED = re.compile(r": | times |; | \(|, (?=which|and measure|so that)")


@memoized
def answers(capture: Record) -> Mapping[Address, Answer]:
    """Return the answers of the kernels of a capture. Calls that share a row of the list share an answer."""
    rows = cost(capture, "kernel").rows
    numbers = {address: row.order for row in rows for address in row.addresses}
    bounds: dict[Address, Bound] = {}
    for one in roofline(capture).bounds:
        cid = one.kernel.compilation or capture.compilations[0].id
        bounds[cid, f"{one.kernel.phase}.code", one.kernel.name] = one
    total = cost(capture, "kernel", "bytes").total
    gain = _Gain(capture)
    attentions = _attentions(capture, numbers, gain)
    neighbours: dict[int, dict[tuple[int, str, str], _Neighbour]] = {}
    for address, other, pair in _pairs(capture):
        if address not in numbers:
            continue
        number = 0 if other == address else numbers.get(other, 0)
        own = neighbours.setdefault(numbers[address], {})
        key = number, pair.why.reason, pair.remedy
        known = own.setdefault(key, _Neighbour(number, other, pair))
        saved = known.saved + (size(pair.why.saved) or 0)
        lines = frozenset((frame.file, frame.line) for frame in pair.why.lines)
        own[key] = replace(known, saved=saved, pairs=known.pairs + 1, lines=known.lines | lines)
    return {
        address: _answer(
            bounds.get(address), list(neighbours.get(row, {}).values()), total, gain, attentions.get(row)
        )
        for address, row in numbers.items()
    }


class _Gain:
    """Words for saved bytes; if kernels are ranked by time, their time at the roofline."""

    def __init__(self, capture: Record) -> None:
        self._speed = roofline(capture).speed if cost(capture, "kernel").unit == SECONDS else None

    def words(self, nbytes: int, most: bool = True) -> str:
        """Return ``at most 12.6 MB less``; with a roofline ``at most ~3.8 µs less at the roofline``."""
        sign = "at most " if most else "~"
        if self._speed is None:
            return f"{sign}{bytes_in_short(nbytes)} less"
        return f"{'at most ' if most else ''}~{seconds_text(nbytes / self._speed.bandwidth)} less at the roofline"


def _attentions(capture: Record, numbers: Mapping[Address, int], gain: _Gain) -> dict[int, Answer]:
    """Return the answer for each row of kernels that compute a part of an attention written with separate operators."""
    by_row: dict[int, Answer] = {}
    for own in attention_by_lines(written_attention(capture)):
        saved = sum(one.moved for one in own)
        words = f"{gain.words(saved, most=False)} in forward"
        answer = Answer(
            (("Try", attention_words(own)),), saved, "SDPA", place=attention_place(own), gain=words
        )
        for address in (address for one in own for address in one.kernels):
            if address in numbers:
                by_row.setdefault(numbers[address], answer)
    return by_row


@dataclass(frozen=True)
class _Neighbour:
    """A row of kernels with which a kernel is not fused, for one reason and with one remedy: number of pairs, lines,
    and bytes."""

    number: int
    address: Address
    pair: UnfusedPair
    saved: int = 0
    pairs: int = 0
    lines: frozenset[tuple[str, int]] = frozenset()

    def words(self, others: list[_Neighbour]) -> str:
        """Return the reason and its cost, together with other neighbours that have the same reason."""
        why = self.pair.why
        loops = why.common or " against ".join(filter(None, why.words))
        what = (
            f"with #{self.number} {_cut(short_name(self.address[2]))}"
            if self.number
            else f"two loops in it{f', {loops}' if loops else ''}"
        )
        reason = why.sentence.rstrip(".")
        if why.reason == "extern" and why.calls:
            reason = f"{_called(self)} is a library call"
        alike = [f"#{one.number}" for one in others if one.number and one.number != self.number]
        if self.number and alike:
            what += f" (nor with {all_names(dict.fromkeys(alike), MAX_NEIGHBOURS)})"
        times = f" in all {self.pairs} places" if self.pairs > 1 else ""
        saved = f" Fusing would save at most {bytes_in_short(self.saved)}{times}." if self.saved else ""
        return f"{what}: {reason}.{saved}"


def _not_fused(neighbours: list[_Neighbour]) -> str:
    """Return the reason why a kernel is not fused with its first neighbour, and the others with the same reason."""
    first, *others = neighbours
    reason = first.pair.why.reason, _called(first)
    return first.words([one for one in others if (one.pair.why.reason, _called(one)) == reason])


def _own_loops(one: _Neighbour) -> str:
    """Return the loops of a kernel that a remedy is for: ``for loops of model.py:7, 9``."""
    if not one.lines:
        return "for its two loops"
    parts = sorted(one.lines)
    files = [None, *(file for file, _ in parts)]
    names = (str(line) if file == before else place(file, line) for before, (file, line) in zip(files, parts))
    return f"for loops of {', '.join(names)}"


def _called(one: _Neighbour) -> str:
    return ", ".join(dict.fromkeys(map(short_name, one.pair.why.calls)))


def _cut(name: str) -> str:
    """Return a name cut for a strip of five lines; its number identifies it."""
    return name if len(name) <= MAX_NAME_CHARACTERS else f"{name[: MAX_NAME_CHARACTERS - 1]}…"


def _answer(
    bound: Bound | None, neighbours: list[_Neighbour], total: float, gain: _Gain, attention: Answer | None
) -> Answer:
    parts = []
    if bound is not None and bound.kernel.intensity is not None:
        kind = f"{bound.bound}-bound. ".capitalize() if bound.bound else ""
        rate = f"{bound.kernel.intensity:.3g} operations/B" if bound.kernel.intensity else "No arithmetic"
        parts.append(("", f"{kind}{rate}."))
    neighbours = sorted(neighbours, key=lambda one: -one.saved)
    applicable = [one for one in neighbours if one.pair.remedy]
    why = [("Not fused", _not_fused(neighbours))] if neighbours else []
    if attention is not None and all(one.saved < attention.saved for one in applicable):
        return replace(attention, parts=(*parts, *attention.parts, *why))
    parts += why
    if not neighbours:
        return Answer(tuple(parts))
    remedy = next((one for one in applicable if one.saved >= max(1, MIN_SAVED_SHARE * total)), None)
    if remedy is None:
        none = (
            f"No remedy that applies saves {MIN_SAVED_SHARE:.0%} of the bytes."
            if applicable
            else "No remedy applies."
        )
        return Answer((*parts, ("", none)))
    against = loops = ""
    if remedy is not neighbours[0] and remedy.number:
        against = f"against #{remedy.number}"
    elif remedy is not neighbours[0]:
        loops = _own_loops(remedy)
    words = gain.words(remedy.saved)
    answer = Answer(tuple(parts), remedy.saved, remedy.pair.remedy.rstrip("."), against, loops, gain=words)
    about = f"{against or loops}, {answer.gain}: " if against or loops else ""
    return replace(answer, parts=(*answer.parts, ("Try", f"{about}{answer.remedy}. Not timed here.")))


def _pairs(capture: Record) -> Iterator[tuple[Address, Address, UnfusedPair]]:
    """Yield each pair of kernels of which two groups are not fused."""
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
    """Return the name of a kernel without common parts: ``gelu_1`` for ``cpp_fused_gelu_1``, ``mm`` for
    ``extern_kernels.mm#2``."""
    return re.sub(r"^(cpp|triton_\w{3}|mps)_fused_(?=\D)|^extern_kernels\.|#\d+$", "", name)
