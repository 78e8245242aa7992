"""The questions and exercises of the lessons, each lesson in a file of its own."""

from __future__ import annotations

from ...errors import UsageError
from ..exercise import Exercise, Question
from . import eight, eleven, five, four, nine, one, seven, six, ten, three, twelve, two, zero

_LESSONS = (zero, one, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve)

QUESTIONS: dict[str, Question] = {q.key: q for lesson in _LESSONS for q in lesson.QUESTIONS}
"""Every question by its key."""

EXERCISES: dict[str, Exercise] = {e.key: e for lesson in _LESSONS for e in lesson.EXERCISES}
"""Every exercise by its key."""


def question(key: str) -> Question:
    """A question by its key. Raises ``UsageError``, which names those that there are."""
    if key not in QUESTIONS:
        raise UsageError(f"there is no question {key!r}; there is {', '.join(QUESTIONS)}")
    return QUESTIONS[key]


def exercise(key: str) -> Exercise:
    """An exercise by its key. Raises ``UsageError``, which names those that there are."""
    if key not in EXERCISES:
        raise UsageError(f"there is no exercise {key!r}; there is {', '.join(EXERCISES)}")
    return EXERCISES[key]
