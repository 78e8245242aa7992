"""Answers to the exercises of the course: correct solutions of several kinds, and common wrong ones."""

from __future__ import annotations

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
from .common import Made, Mistake

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

RIGHT: dict[str, list[Made]] = {key: made for lesson in _LESSONS for key, made in lesson.RIGHT.items()}
"""Programs that do what is asked, in different ways."""

MISLED: dict[str, list[Mistake]] = {key: found for lesson in _LESSONS for key, found in lesson.MISLED.items()}
"""Common mistakes, with what is said to each."""
