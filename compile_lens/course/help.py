"""Hints in steps, and a solution for who has tried."""

from __future__ import annotations

from . import state, wording
from .display import Shown
from .lessons import exercise


class Words(Shown, str):
    """Text that a notebook shows as it is."""

    def __repr__(self) -> str:
        return str(self)


def hint(key: str | float) -> Words:
    """The next hint to an exercise; after the last one, the last one again."""
    wanted = exercise(key)
    key, hints = wanted.key, wording.hints(wanted)
    number = min(state.hinted(key), len(hints))
    more = len(hints) - number
    left = wording.tell("more", more=more) if more else wording.tell("last")
    return Words(wording.tell("hint", key=key, number=number, left=left, hint=hints[number - 1]))


def solution(key: str | float) -> Words:
    """Return a correct program, or a request to try first if there was no attempt."""
    wanted = exercise(key)
    key, text = wanted.key, wanted.solution
    if not state.load().attempts(key):
        return Words(wording.tell("try first", key=key))
    return Words(wording.tell("solution", key=key, code=text))
