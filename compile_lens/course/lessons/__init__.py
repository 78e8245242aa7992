"""Questions and exercises, one file per lesson."""

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
    """Return a question by its key. Raises ``UsageError``, which names similar keys and those of the lesson."""
    if key not in QUESTIONS:
        raise UsageError(message("no question", key=key, there=_suggestions(key, QUESTIONS)))
    return QUESTIONS[key]


def exercise(key: str | float) -> Exercise:
    """Return an exercise by its key, ``"1.2"`` or ``1.2``. Raises ``UsageError``, which names similar keys and those
    of the lesson."""
    key = str(key) if isinstance(key, float) else key
    if key not in EXERCISES:
        raise UsageError(message("no exercise", key=key, there=_suggestions(key, EXERCISES)))
    return EXERCISES[key]


def _suggestions(key: object, keys: Iterable[str]) -> str:
    """Return a message part with the keys that may have been meant: the most similar one and those of the lesson."""
    there = list(keys)
    lesson, _, name = str(key).partition(".")
    own = [one for one in there if one.partition(".")[0] == lesson]
    # All numeric keys look similar: 9.9 is hardly a typo for 0.9.
    close = [] if name.isdigit() and own else difflib.get_close_matches(str(key), there, 1)
    meant = message("meant", close=close[0]) if close else ""
    if own:
        return meant + message("of lesson", lesson=lesson, keys=", ".join(own))
    return meant + message("of all", count=len(there), first=there[0], last=there[-1])
