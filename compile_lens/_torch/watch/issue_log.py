"""The collectives that one watch sees a process issue, each different one stored once."""

from __future__ import annotations

from ...record import claims
from ...record.collectives import EarlierCollectives, IssuedCollective, IssuedCollectives
from ...record.missing import Missing

LIMIT = 1_000_000
"""Most calls that are recorded of one program."""


class IssueLog:
    """The issued collectives, in order."""

    def __init__(self) -> None:
        self._numbers: dict[IssuedCollective, int] = {}
        self._order: list[int] = []
        self.dropped = 0
        self.earlier: tuple[EarlierCollectives, ...] = ()
        self.groups_before = 0

    def add(self, one: IssuedCollective) -> None:
        """Record one more."""
        if len(self._order) >= LIMIT:
            self.dropped += 1
        else:
            self._order.append(self._numbers.setdefault(one, len(self._numbers)))

    def record(self) -> IssuedCollectives:
        """Return them as plain data."""
        return IssuedCollectives(tuple(self._numbers), tuple(self._order), self.earlier, self.groups_before)

    def missing(self) -> tuple[Missing, ...]:
        """Return what is not in it."""
        if not self.dropped:
            return ()
        return (Missing(claims.COLLECTIVES, f"after {LIMIT} of them, {self.dropped} more were issued"),)
