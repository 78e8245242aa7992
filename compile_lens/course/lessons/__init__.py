"""The questions and exercises of the lessons, each lesson in a file of its own."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from ...errors import UsageError
from ..exercise import Exercise, Question
from ..wording import message
from . import (
    eight,
    eleven,
    fifteen,
    five,
    four,
    fourteen,
    nine,
    one,
    seven,
    six,
    sixteen,
    ten,
    thirteen,
    three,
    twelve,
    two,
    zero,
)

_LESSONS = (
    zero,
    one,
    two,
    three,
    four,
    five,
    six,
    seven,
    eight,
    nine,
    ten,
    eleven,
    twelve,
    thirteen,
    fourteen,
    fifteen,
    sixteen,
)

QUESTIONS: dict[str, Question] = {q.key: q for lesson in _LESSONS for q in lesson.QUESTIONS}
"""Every question by its key."""

EXERCISES: dict[str, Exercise] = {e.key: e for lesson in _LESSONS for e in lesson.EXERCISES}
"""Every exercise by its key."""


def question(key: str) -> Question:
    """A question by its key. Raises ``UsageError``, which names the near ones and those of the lesson."""
    if key not in QUESTIONS:
        raise UsageError(message("no question", key=key, there=_near(key, QUESTIONS)))
    return QUESTIONS[key]


def exercise(key: str | float) -> Exercise:
    """An exercise by its key, ``"1.2"`` or ``1.2``. Raises ``UsageError``, which names the near ones and those of the
    lesson."""
    key = str(key) if isinstance(key, float) else key
    if key not in EXERCISES:
        raise UsageError(message("no exercise", key=key, there=_near(key, EXERCISES)))
    return EXERCISES[key]


def _near(key: object, keys: Iterable[str]) -> str:
    """Return keys that the caller may have meant: those spelt like it, and those of its lesson."""
    there = list(keys)
    lesson, _, name = str(key).partition(".")
    own = [one for one in there if one.partition(".")[0] == lesson]
    # Numbers are near to one another all the same: 9.9 is no slip for 0.9.
    close = [] if name.isdigit() and own else difflib.get_close_matches(str(key), there, 1)
    meant = message("meant", close=close[0]) if close else ""
    if own:
        return meant + message("of lesson", lesson=lesson, keys=", ".join(own))
    return meant + message("of all", count=len(there), first=there[0], last=there[-1])
