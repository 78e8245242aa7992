"""A limit on the transformations that a compile applies (decompositions, passes, fusions, lowerings), or on the
operators that are compiled at all.

A search for the transformation that changes a result compiles the same call repeatedly, each time with the first *n* of
one kind. Torch works in the same order each time, so a number always means the same transformation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from ...record.divergence import Transformation

Describe = Callable[[], Transformation]


class Limit:
    """The range of transformations of one ``kind`` that a compile applies: those after the first ``least``, up to
    number ``most``.

    Without a kind it applies all of them.

    Attributes:
        counts: number of transformations by kind, applied or not.
        first: the first one applied of the limited kind, by kind.
        last: the last one applied, by kind; if no kind is limited, the last of each.
    """

    def __init__(self, kind: str = "", most: int = 0, least: int = 0) -> None:
        self.kind, self.most, self.least = kind, most, least
        self.counts: Counter[str] = Counter()
        self.first: dict[str, Transformation] = {}
        self.last: dict[str, Transformation] = {}

    def allows(self, kind: str, describe: Describe) -> bool:
        """Count one transformation; return True if it is to be applied."""
        self.counts[kind] += 1
        if kind != self.kind:
            if not self.kind:
                self.last[kind] = describe()
            return True
        if self.counts[kind] == self.most:
            self.last[kind] = describe()
        if self.counts[kind] == self.least + 1:
            self.first[kind] = describe()
        return self.least < self.counts[kind] <= self.most
