"""The collectives that a process issues during one watch, each distinct one stored once."""

from __future__ import annotations

from dataclasses import replace

from ...record import claims
from ...record.collectives import EarlierCollectives, IssuedCollective, IssuedCollectives
from ...record.missing import Missing

LIMIT = 1_000_000
"""Limit on the calls recorded of one program."""


class IssueLog:
    """The issued collectives, in order."""

    def __init__(self) -> None:
        self._numbers: dict[IssuedCollective, int] = {}
        self._distinct: list[IssuedCollective] = []
        self._order: list[int] = []
        self._variants: dict[tuple[int, bool | None], int] = {}
        """Number of a variant, by the number of its call and whether the process waits for it."""
        self._waits: list[tuple[int, int]] = []
        self.dropped = 0
        self.earlier: tuple[EarlierCollectives, ...] = ()
        self.groups_before = 0

    def add(self, one: IssuedCollective) -> int | None:
        """Record a collective and return its position; None past the limit."""
        if len(self._order) >= LIMIT:
            self.dropped += 1
            return None
        self._order.append(self._number(one))
        return len(self._order) - 1

    def wait(self, position: int) -> None:
        """Record that the process now waits for the call at a position."""
        if position == len(self._order) - 1:
            self._set_waits(position, True)
        elif len(self._waits) < LIMIT:
            self._set_waits(position, False)
            self._waits.append((len(self._order), position))

    def wait_unknown(self, position: int) -> None:
        """Record that the time of the wait for the call at a position is unknown."""
        self._set_waits(position, None)

    def _set_waits(self, position: int, waits: bool | None) -> None:
        key = (self._order[position], waits)
        if key not in self._variants:
            self._variants[key] = self._number(replace(self._distinct[key[0]], waits=waits))
        self._order[position] = self._variants[key]

    def _number(self, one: IssuedCollective) -> int:
        number = self._numbers.setdefault(one, len(self._distinct))
        if number == len(self._distinct):
            self._distinct.append(one)
        return number

    def record(self) -> IssuedCollectives:
        """Return the issued collectives as plain data."""
        used = sorted(set(self._order))
        numbers = {number: place for place, number in enumerate(used)}
        return IssuedCollectives(
            tuple(self._distinct[number] for number in used),
            tuple(numbers[number] for number in self._order),
            self.earlier,
            self.groups_before,
            tuple(self._waits),
        )

    def missing(self) -> tuple[Missing, ...]:
        """Return the claim on calls past the limit, if there were any."""
        if not self.dropped:
            return ()
        return (Missing(claims.COLLECTIVES, f"after {LIMIT} of them, {self.dropped} more were issued"),)
