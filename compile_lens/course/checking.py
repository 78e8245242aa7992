"""Predictions stored before the reveal; checks of a student's function against a fresh capture; hints, solutions."""

from __future__ import annotations

import dis
import inspect
import operator
import re
from dataclasses import dataclass
from typing import Any

from ..devices import models
from ..errors import UsageError
from ..record.figures import AtLeast
from ..results.capture import Capture, CaptureError
from ..views.story.model import text
from ..views.words.characters import flat
from . import state, wording
from .exercise import AT_LEAST, AT_MOST, EXACTLY, Exercise, Need, Question
from .facts import FACTS, Number, absent, not_observed, value_text
from .lessons import exercise, question
from .reference import captured, differs, plain_error, rewritten
from .wording import Shown, message, slips

_OPERATORS = {AT_LEAST: operator.ge, AT_MOST: operator.le, EXACTLY: operator.eq}

MAX_CHARACTERS = 200
"""Most characters of the first line of an error message."""


@dataclass(frozen=True, repr=False)
class Verdict(Shown):
    """Result of ``check``: ``right``, which is also its ``bool``, and a sentence for each reason why not."""

    key: str
    right: bool
    reasons: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.right

    def __repr__(self) -> str:
        if self.right:
            return message("right", key=self.key)
        return "\n".join((message("wrong", key=self.key), *(f"  {reason}" for reason in self.reasons)))


def check(key: str | float, made: Any = None) -> Verdict:
    """Capture a solution of an exercise, and return the requirements that it does not meet, never the answer.

    ``made`` is a function. The attempt is stored in the file of ``progress()``; an empty function is no attempt. Raise
    ``UsageError`` for an unknown exercise.
    """
    wanted = exercise(key)
    key = wanted.key
    tried, reasons = judged(wanted, made)
    if tried:
        state.attempted(key, not reasons)
    return Verdict(key, not reasons, reasons)


def judged(wanted: Exercise, made: Any) -> tuple[bool, tuple[str, ...]]:
    """Return whether the function counts as an attempt, and the requirements that it does not meet."""
    if made is None or made is ...:
        return False, (message("empty"),)
    if isinstance(made, Capture) or not callable(made):
        return False, (message("type", name=type(made).__name__),)
    if untouched(made):
        return False, (message("stub", key=wanted.key),)
    if wanted.program is not None:
        try:
            made = rewritten(made, wanted.program, wanted.inputs)
        except Exception as error:  # raised by the student's code, or because its result is not callable
            takes = _accepts_inputs(made, wanted)
            why = _first_line(error) if takes else message("inputs", count=len(wanted.inputs))
            return True, (message("failed", why=why),)
    try:
        capture = captured(made, wanted.calls, wanted.target)
    except (UsageError, CaptureError) as error:
        return True, (message("failed", why=_why(error, made, wanted)),)
    if not capture.compilations:  # it is an attempt if Dynamo skipped code
        why = message("nothing", why=_nothing(capture, wanted).rstrip("."))
        left = bool(FACTS["skipped"].of(capture))
        return left, (why, *(_slips(capture, wanted)[:1] if left else ()))
    unmet = [need for need in wanted.needs if not _holds(capture, need)]
    mistaken = _slips(capture, wanted) if unmet else []
    other = differs(made, wanted.same_as, wanted.calls) if wanted.same_as is not None else ""
    wrong = (message("other", how=other),) if other else () if _uses(capture) else (message("unused"),)
    return True, (*wrong, *(_unmet(capture, need) for need in unmet), *mistaken[:1])


def _accepts_inputs(made: Any, wanted: Exercise) -> bool:
    """Return True if the function can be called with the inputs of the exercise."""
    try:
        inspect.signature(made).bind(*wanted.inputs)
    except (TypeError, ValueError):
        return False
    return True


def _uses(capture: Capture) -> bool:
    """Return True if a graph has an input, since Dynamo removes unused ones. Without a graph, Python may use them."""
    graphs = [graph for c in capture.compilations if (graph := c.graphs.get("dynamo"))]
    return not graphs or any(node.op == "placeholder" for graph in graphs for node in graph.nodes)


def _slips(capture: Capture, wanted: Exercise) -> list[str]:
    return [
        says
        for slip, says in zip(wanted.slips, slips(wanted), strict=True)
        if all(_holds(capture, need) for need in slip.when)
    ]


def _nothing(capture: Capture, wanted: Exercise) -> str:
    if wanted.again:  # the capture's report is about the loop around the calls
        return message("no operator")
    if not capture.breaks and not capture.skipped and str(capture.nothing_compiled).startswith(_NO_OPERATION):
        return message("no work")
    return text(capture.nothing_compiled) or message("unsaid")


_NO_OPERATION = ("Dynamo skipped every frame", "Dynamo looked at it")
"""Prefixes of a capture's report that there was no operation to compile."""


def _holds(capture: Capture, need: Need) -> bool:
    value = None if not_observed(need.fact, capture) else FACTS[need.fact].of(capture)
    return isinstance(value, int) and bool(_OPERATORS[need.relation](value, need.value))


def _unmet(capture: Capture, need: Need) -> str:
    value = None if not_observed(need.fact, capture) else FACTS[need.fact].of(capture)
    has = value_text(need.fact, value)
    return message("unmet", has=has, relation=message(need.relation), value=need.value)


def _why(error: UsageError | CaptureError, made: Any, wanted: Exercise) -> str:
    """Return why a function could not be captured: its own error, a wrong number of inputs, or a tensor created on
    another device than the others."""
    if not _accepts_inputs(made, wanted):
        return message("inputs", count=len(wanted.inputs))
    if isinstance(error, UsageError):
        return f"{flat(str(error)).partition('. ')[0]}."
    plain = plain_error(made, wanted.calls)
    cause = plain or error.__cause__ or error
    model = models.resolve(wanted.target) if wanted.target else None
    if plain is None and model is not None and model.device != "cpu" and _DEVICE_MISMATCH.search(str(cause)):
        return message("device", device=model.title)
    return _first_line(cause)


_DEVICE_MISMATCH = re.compile(r"device mismatch|two devices|different devices|same device", re.I)
"""PyTorch's phrases for operands of one operator on several devices."""


def _first_line(error: BaseException) -> str:
    line = flat(str(error).strip().partition("\n")[0])
    return f"{type(error).__name__}: {line[:MAX_CHARACTERS]}" if line else type(error).__name__


_IGNORED_OPCODES = frozenset(
    "RESUME NOP CACHE POP_TOP PUSH_NULL PRECALL CALL CALL_FUNCTION NOT_TAKEN RETURN_VALUE".split()
)
_RAISING_OPCODES = frozenset("LOAD_GLOBAL LOAD_COMMON_CONSTANT LOAD_CONST RAISE_VARARGS".split())


def untouched(made: Any) -> bool:
    """Return True if the body is only ``pass``, ``...``, a docstring, ``return None`` or ``raise
    NotImplementedError``."""
    function = inspect.unwrap(getattr(made, "forward", made))
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if code is None:
        return False
    steps = [step for step in dis.get_instructions(code) if step.opname not in _IGNORED_OPCODES]
    if all(step.opname in ("LOAD_CONST", "RETURN_CONST") for step in steps):
        return all(step.argval is None or step.argval is ... for step in steps)
    names = {step.argval for step in steps if step.opname in ("LOAD_GLOBAL", "LOAD_COMMON_CONSTANT")}
    raised = {name if isinstance(name, str) else getattr(name, "__name__", "") for name in names}
    return raised == {"NotImplementedError"} and all(step.opname in _RAISING_OPCODES for step in steps)


class Words(Shown, str):
    """Text that a notebook shows without quotes."""

    def __repr__(self) -> str:
        return str(self)


def hint(key: str | float) -> Words:
    """Return the next hint for an exercise; after the last one, the last one again."""
    wanted = exercise(key)
    key, hints = wanted.key, wording.hints(wanted)
    number = min(state.hinted(key), len(hints))
    more = len(hints) - number
    left = wording.message("more", more=more) if more else wording.message("last")
    return Words(wording.message("hint", key=key, number=number, left=left, hint=hints[number - 1]))


def solution(key: str | float) -> Words:
    """Return a correct program, or a request to try first if there was no attempt."""
    wanted = exercise(key)
    key, text = wanted.key, wanted.solution
    if not state.load().attempts(key):
        return Words(wording.message("try first", key=key))
    return Words(wording.message("solution", key=key, code=text))


@dataclass(frozen=True, repr=False)
class Prediction(Shown):
    """A prediction made before running the code, ``()`` if there is none yet; ``reveal(capture)`` compares it with the
    facts."""

    asked: Question
    answer: tuple[int, ...]

    def __repr__(self) -> str:
        if not self.answer:
            return message(
                "no guess yet", question=wording.question_text(self.asked), names=_names(self.asked)
            )
        named = zip(self.asked.parts, self.answer)
        answer = message(", ").join(f"{wording.part(name)} {value:,}" for (name, _), value in named)
        return message("predicted", question=wording.question_text(self.asked), said=answer)

    def reveal(self, capture: Capture) -> Reveal:
        """Return the prediction compared with the capture; raise ``UsageError`` if the capture has no answer."""
        if not isinstance(capture, Capture):
            raise UsageError(message("no capture", key=self.asked.key, name=type(capture).__name__))
        facts = [fact for _, fact in self.asked.parts]
        values = [FACTS[fact].of(capture) for fact in facts]
        unknown = (
            value_text(fact, v) for fact, v in zip(facts, values) if v is None or isinstance(v, AtLeast)
        )
        reasons = (*_other_target(capture, self.asked), *(absent(fact, capture) for fact in facts), *unknown)
        if reason := next(filter(None, reasons), ""):
            raise UsageError(message("no answer", key=self.asked.key, why=reason))
        return Reveal(
            self, tuple(value_text(fact, value) for fact, value in zip(facts, values)), tuple(values)
        )


@dataclass(frozen=True, repr=False)
class Reveal(Shown):
    """Comparison of a prediction with the capture, part by part."""

    prediction: Prediction
    truth: tuple[str, ...]
    values: tuple[Number, ...]

    @property
    def right(self) -> tuple[bool, ...]:
        """True for each number of the prediction that equals the capture's; ``()`` without a prediction."""
        return tuple(a == value for a, value in zip(self.prediction.answer, self.values))

    def __repr__(self) -> str:
        answer = self.prediction.answer or (None,) * len(self.values)
        lines = [wording.question_text(self.prediction.asked)]
        rows = zip(self.prediction.asked.parts, answer, self.truth, self.values)
        for (name, _), value, truth, fact in rows:
            what = "no guess" if value is None else "as said" if value == fact else "other than said"
            lines.append(message(what, name=wording.part(name), value=value, truth=truth))
        return "\n".join(lines)


def _other_target(capture: Capture, asked: Question) -> list[str]:
    """Return the error if a question is about a device and the capture has code for another one; ``[]`` if not."""
    environment = capture.environment
    model = models.resolve(asked.target) if asked.target else None
    if model is None or (model.device == "cpu" and environment.isa == model.arch):
        return []
    if model.device != "cpu" and environment.device in (model.title, *model.torch_names):
        return []
    return [message("other target", target=asked.target, device=model.title)]


def _names(asked: Question) -> str:
    return ", ".join(wording.part(name) for name, _ in asked.parts)


def predict(key: str, *answer: int | None) -> Prediction:
    """Store the answer to a question of a lesson before the code runs, and return it as a ``Prediction``.

    The ``Prediction``'s ``reveal(capture)`` compares it with the facts. Without an answer, the stored one is returned.
    A part that is ``None`` is not guessed yet, as in an unedited lesson: nothing is stored then. Raise ``UsageError``
    for an unknown question, or an answer of another form.
    """
    wanted = question(key)
    key = wanted.key
    if None in answer and len(answer) == len(wanted.parts):
        return Prediction(wanted, state.load().answer(key) or ())
    if not answer:
        kept = state.load().answer(key)
        if kept is None:
            raise UsageError(message("answer first", key=key, names=_names(wanted)))
        return Prediction(wanted, kept)
    numbers = tuple(n for n in answer if isinstance(n, int) and not isinstance(n, bool))
    if len(answer) != len(wanted.parts) or len(numbers) != len(answer):
        what = "asks for" if len(wanted.parts) > 1 else "asks for one"
        count = len(wanted.parts)
        raise UsageError(message(what, key=key, count=count, names=_names(wanted), answer=answer))
    if min(numbers) < 0:  # every fact is a count
        raise UsageError(message("negative", key=key, answer=answer))
    state.predicted(key, numbers)
    return Prediction(wanted, numbers)
