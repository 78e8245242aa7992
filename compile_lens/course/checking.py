"""Whether what a student made does what was asked: facts of a fresh capture say so."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

from ..errors import UsageError
from ..results.capture import Capture, CaptureError
from ..views.story.language import text
from ..views.words.characters import flat
from . import state
from .exercise import AT_LEAST, AT_MOST, EXACTLY, Exercise, Need
from .facts import FACTS
from .fresh import captured, differs
from .lessons import exercise

_HOLDS = {AT_LEAST: operator.ge, AT_MOST: operator.le, EXACTLY: operator.eq}

LONGEST = 200
"""Characters of an error's message: the first line of it, as far as that."""


@dataclass(frozen=True, repr=False)
class Verdict:
    """What ``check`` says: whether it is right, and why not, a sentence each. ``bool`` of it is ``right``."""

    key: str
    right: bool
    reasons: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.right

    def __repr__(self) -> str:
        if self.right:
            return f"{self.key}: right. The capture of your function shows all that was asked."
        return "\n".join((f"{self.key}: not yet.", *(f"  {reason}" for reason in self.reasons)))


def check(key: str, made: Any = None) -> Verdict:
    """Capture what was made for an exercise, and say what of it is not as asked; never the answer.

    ``made`` is a function. The attempt is kept in the file of ``progress()``; an empty one is none. Raises
    ``UsageError`` for an exercise that there is not.
    """
    wanted = exercise(key)
    tried, reasons = _judged(wanted, made)
    if tried:
        state.attempted(key, not reasons)
    return Verdict(key, not reasons, reasons)


def _judged(wanted: Exercise, made: Any) -> tuple[bool, tuple[str, ...]]:
    """Whether it was an attempt at all, and what is not as asked."""
    if made is None or made is ...:
        return False, ("There is nothing to check yet: give the function that you wrote.",)
    if isinstance(made, Capture) or not callable(made):
        name = type(made).__name__
        return False, (
            f"What was given is of type {name}. Give the function itself: it is captured afresh here.",
        )
    try:
        found = captured(made, wanted.calls, wanted.target)
    except UsageError as error:  # it cannot be called with the inputs of the exercise
        return True, (f"It could not be captured: {flat(str(error)).partition('. ')[0]}.",)
    except CaptureError as error:
        return True, (f"It could not be captured: {_first(error.__cause__ or error)}",)
    if not found.compilations:  # there was work, if Dynamo left it to Python
        why = f"Nothing of it was compiled: {_nothing(found, wanted).rstrip('.')}."
        left = bool(FACTS["skipped"].of(found))
        return left, (why, *(_slips(found, wanted)[:1] if left else ()))
    unmet = [need for need in wanted.needs if not _holds(found, need)]
    slips = _slips(found, wanted) if unmet else []
    other = differs(made, wanted.same_as, wanted.calls) if wanted.same_as is not None else ""
    wrong = (f"It does not compute what was asked: {other}.",) if other else ()
    return True, (*wrong, *(_unmet(found, need) for need in unmet), *slips[:1])


def _slips(found: Capture, wanted: Exercise) -> list[str]:
    return [slip.says for slip in wanted.slips if all(_holds(found, need) for need in slip.when)]


def _nothing(found: Capture, wanted: Exercise) -> str:
    if wanted.again:  # what the capture says is of the loop around the calls
        return "Dynamo found no operator in any of the calls"
    return text(found.nothing) or "the capture does not say why"


def _holds(found: Capture, need: Need) -> bool:
    value = FACTS[need.fact].of(found)
    return isinstance(value, int) and bool(_HOLDS[need.relation](value, need.value))


def _unmet(found: Capture, need: Need) -> str:
    fact = FACTS[need.fact]
    return f"Its capture has {fact.said(fact.of(found))}; asked for: {need.relation} {need.value:,}."


def _first(error: BaseException) -> str:
    line = flat(str(error).strip().partition("\n")[0])
    return f"{type(error).__name__}: {line[:LONGEST]}" if line else type(error).__name__
