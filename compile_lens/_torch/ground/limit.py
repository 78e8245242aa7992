"""A limit on the transformations that a compile applies: decompositions, passes, fusions, lowerings; or on the
operators that are compiled at all.

A search for the one that changes a result compiles the same call again and again, each time with the first so many of
one kind. Torch does the same work in the same order each time, so that their numbers are the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from ...record.divergence import Transformation

Describe = Callable[[], Transformation]


class Limit:
    """The number of transformations of one ``kind`` that a compile applies: the first ``most`` without the first
    ``least``, and none after.

    Without a kind it applies all of them.

    Attributes:
        counts: by kind, how many there were, applied or not.
        first: by kind, the first one that was applied, of the kind that is limited.
        last: by kind, the last one that was applied; of kinds that are not limited, the last of all.
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
