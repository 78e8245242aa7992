"""Figures with their basis, and partly known figures that are not single numbers.

The number of loop iterations and the branch of a choice are only known at run time: such a count is *per iteration*, or
*one or the other*. A sum with unknown parts is *at least* the sum of the known ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

MEASURED = "measured"
MODELLED = "modelled"


class Figure(int):
    """An integer with its basis: ``"measured"`` or ``"modelled"``.

    Otherwise it is an ``int``; arithmetic gives plain ints (``add`` keeps the basis).
    """

    basis: str

    def __new__(cls, value: int, basis: str = MEASURED) -> Figure:
        figure = super().__new__(cls, value)
        figure.basis = basis
        return figure

    def __getnewargs__(self) -> tuple[int, str]:  # type: ignore[override]
        return int(self), self.basis


ONE = Figure(1)


def add(figures: Iterable[Figure]) -> Figure:
    """Return the sum of figures. It is measured only if all of them are; the sum of none is a measured 0."""
    parts = tuple(figures)
    basis = MODELLED if any(p.basis == MODELLED for p in parts) else MEASURED
    return Figure(sum(parts), basis)


@dataclass(frozen=True)
class Count:
    """A count that is ``fixed`` for each call, plus a part that depends on control flow.

    Attributes:
        iterations: for each loop, the count of one iteration.
        branches: for each choice, the counts of its two branches, of which a call adds one.
        correlated: whether some choices may be the same, like those of a forward and its backward: then not every
            combination is possible, and only the bounds are certain.
    """

    fixed: int = 0
    iterations: tuple[Count, ...] = ()
    branches: tuple[tuple[Count, Count], ...] = ()
    correlated: bool = False

    @property
    def least(self) -> int:
        """Minimum over all calls: loops without iterations, and the smaller branch of each choice."""
        return self.fixed + sum(min(one.least, two.least) for one, two in self.branches)

    @property
    def most(self) -> int | None:
        """Maximum over all calls; None if a loop adds to it at each iteration."""
        ways = [(one.most, two.most) for one, two in self.branches]
        if self.iterations or any(None in pair for pair in ways):
            return None
        return self.fixed + sum(max(m for m in pair if m is not None) for pair in ways)

    @property
    def number(self) -> int | None:
        """Number for every call; None if it depends on loops or branches."""
        return self.least if self.least == self.most else None

    def text(self, number: Callable[[int], str] = "{:,}".format) -> str:
        """Return the count in words: ``7``, ``1 or 3``, ``2 to 6``, ``3 + 4 per iteration``."""
        if self.most is not None and (self.correlated or self._choices() > _MAX_CHOICES):
            return f"{number(self.least)} to {number(self.most)}"
        numbers = None if self.most is None else self._numbers()
        if numbers is not None:
            return _or([number(n) for n in sorted(numbers)])
        plain = Count(
            self.fixed, (), tuple(pair for pair in self.branches if not any(map(_is_unbounded, pair)))
        )
        parts = [plain.text(number)] if plain.most else []
        if parts and plain.least != plain.most:
            parts = [f"({parts[0]})"]
        for pair in self.branches:
            if any(map(_is_unbounded, pair)):
                parts.append("({} or {})".format(*(way.text(number) for way in pair)))
        for place, iteration in enumerate(self.iterations, 1):
            inner = iteration.text(number)
            which = f" of loop {place}" if len(self.iterations) > 1 else ""
            parts.append(
                f"{inner if iteration.least == iteration.most else f'({inner})'} per iteration{which}"
            )
        return " + ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Return this as plain JSON data."""
        return {
            "fixed": self.fixed,
            "per_iteration": [iteration.to_dict() for iteration in self.iterations],
            "branches": [[one.to_dict(), two.to_dict()] for one, two in self.branches],
        }

    def _numbers(self) -> frozenset[int] | None:
        """Return the possible numbers over all choices; ``None`` if a loop adds to the count."""
        if self.iterations:
            return None
        numbers = frozenset((self.fixed,))
        for pair in self.branches:
            one, two = (way._numbers() for way in pair)
            if one is None or two is None:
                return None
            numbers = frozenset(n + more for n in numbers for more in one | two)
        return numbers

    def _choices(self) -> int:
        return sum(1 + one._choices() + two._choices() for one, two in self.branches)


_MAX_CHOICES = 8
"""Most choices whose outcomes are listed one by one."""


def _is_unbounded(count: Count) -> bool:
    return count.most is None


def _or(numbers: list[str]) -> str:
    if len(numbers) > 4:
        return f"{numbers[0]} to {numbers[-1]}"
    return " or ".join(filter(None, (", ".join(numbers[:-1]), numbers[-1])))


def count(
    fixed: int = 0, iterations: Iterable[Count] = (), either: Iterable[tuple[Count, Count]] = ()
) -> Count:
    """Return a ``Count`` in its simplest form: without choices of equal branches and without empty loops."""
    loops = [iteration for iteration in iterations if iteration != Count()]
    choices: list[tuple[Count, Count]] = []
    for one, two in either:
        if one == two:
            fixed += one.fixed
            loops += one.iterations
            choices += one.branches
        else:
            choices.append((one, two))
    return Count(fixed, tuple(loops), tuple(choices))


def total(counts: Iterable[Count]) -> Count:
    """Return the sum of counts."""
    parts = tuple(counts)
    sum_of_parts = count(
        sum(c.fixed for c in parts),
        [iteration for c in parts for iteration in c.iterations],
        [pair for c in parts for pair in c.branches],
    )
    return replace(sum_of_parts, correlated=True) if any(c.correlated for c in parts) else sum_of_parts


@dataclass(frozen=True)
class AtLeast:
    """Lower bound of a figure that is not a single known number. It is no ``int``, to prevent calculating with it by
    mistake.

    Attributes:
        count: the sum of the known parts.
        basis: as in ``Figure``.
        known, graphs: the number of fully known graphs, and of all graphs.
    """

    count: Count
    basis: str = MEASURED
    known: int = field(default=1, kw_only=True)
    graphs: int = field(default=1, kw_only=True)

    @property
    def least(self) -> int:
        """Lower bound over all calls."""
        return self.count.least

    @property
    def most(self) -> int | None:
        """Upper bound over all calls; ``None`` if not known."""
        return self.count.most if self.known == self.graphs else None

    def text(self, number: Callable[[int], str] = "{:,}".format, mark: str = "") -> str:
        """Return the bound in words: ``≥ 5 (9 of 10 graphs)``, ``3 + 4 per iteration``; ``mark`` goes first."""
        words = mark + self.count.text(number)
        return words if self.known == self.graphs else f"≥ {words}{of_graphs(self.known, self.graphs)}"

    def __str__(self) -> str:
        return self.text()

    def to_dict(self) -> dict[str, Any]:
        """Return this as plain JSON data."""
        return {
            "text": str(self),
            "least": self.least,
            "most": self.most,
            "known_graphs": self.known,
            "graphs": self.graphs,
            **self.count.to_dict(),
        }


def of_graphs(known: int, graphs: int) -> str:
    """Return `` (9 of 10 graphs)`` for the fully known graphs; ``""`` if there is only one graph."""
    return f" ({known:,} of {graphs:,} graphs)" if graphs > 1 else ""


def figure(value: Count, basis: str, known: int = 1, graphs: int = 1) -> Figure | AtLeast:
    """Return a ``Figure`` if the value is a single, fully known number, else an ``AtLeast``."""
    if known == graphs and value == Count(value.fixed):
        return Figure(value.fixed, basis)
    return AtLeast(value, basis, known=known, graphs=graphs)


def summed(parts: Iterable[Figure | AtLeast | None]) -> Figure | AtLeast | None:
    """Return the sum of the figures of graphs; ``None`` stands for an unknown figure, and is returned if all are
    unknown."""
    addends = tuple(parts)
    known = [p for p in addends if p is not None]
    partial = [p for p in known if isinstance(p, AtLeast)]
    graphs = sum(p.graphs for p in partial) + len(addends) - len(partial)
    wholly = sum(p.known for p in partial) + len(known) - len(partial)
    if addends and not known:
        return None
    basis = MODELLED if any(p.basis == MODELLED for p in known) else MEASURED
    counts = [Count(int(p)) if isinstance(p, Figure) else p.count for p in known]
    sum_of_parts = total(counts)
    if sum(bool(c.branches) for c in counts) > 1:  # several graphs may take the same branch
        sum_of_parts = replace(sum_of_parts, correlated=True)
    return figure(sum_of_parts, basis, wholly, graphs)
