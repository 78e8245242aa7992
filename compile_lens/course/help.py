"""Hints in steps, and a solution for who has tried."""

from __future__ import annotations

from . import state
from .lessons import exercise


class Words(str):
    """Text that a notebook shows as it is."""

    def __repr__(self) -> str:
        return str(self)


def hint(key: str) -> Words:
    """The next hint to an exercise; after the last one, the last one again."""
    hints = exercise(key).hints
    number = min(state.hinted(key), len(hints))
    more = len(hints) - number
    left = f"{more} more" if more else "the last one"
    return Words(f"{key}, hint {number} ({left}): {hints[number - 1]}")


def solution(key: str) -> Words:
    """One right program; there are others. Only after an attempt: trying is how it is learnt."""
    text = exercise(key).solution
    if not state.load().attempts(key):
        return Words(
            f"{key}: try it first, with check({key!r}, your_function). A wrong attempt is an attempt."
        )
    return Words(f"{key}: one of several:\n\n{text}")
