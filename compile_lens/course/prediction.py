"""An answer that is kept before the reveal, and shown beside what the capture says."""

from __future__ import annotations

from dataclasses import dataclass

from ..devices import models
from ..errors import UsageError
from ..record.figures import AtLeast
from ..results.capture import Capture
from . import state, wording
from .exercise import Question
from .facts import FACTS, absent, said
from .lessons import question
from .wording import Shown, tell


@dataclass(frozen=True, repr=False)
class Prediction(Shown):
    """An answer that was given blind; ``reveal(capture)`` shows it beside the truth."""

    asked: Question
    answer: tuple[int, ...]

    def __repr__(self) -> str:
        named = zip(self.asked.parts, self.answer)
        answer = tell(", ").join(f"{wording.part(name)} {value:,}" for (name, _), value in named)
        return tell("predicted", question=wording.asked(self.asked), said=answer)

    def reveal(self, capture: Capture) -> Reveal:
        """The answer beside what this capture says. Raises ``UsageError`` for a capture that has no answer."""
        facts = [fact for _, fact in self.asked.parts]
        values = [FACTS[fact].of(capture) for fact in facts]
        unknown = (said(fact, v) for fact, v in zip(facts, values) if v is None or isinstance(v, AtLeast))
        reasons = (*_other_target(capture, self.asked), *(absent(fact, capture) for fact in facts), *unknown)
        if reason := next(filter(None, reasons), ""):
            raise UsageError(tell("no answer", key=self.asked.key, why=reason))
        truth = tuple(said(fact, value) for fact, value in zip(facts, values))
        return Reveal(self, truth, tuple(a == value for a, value in zip(self.answer, values)))


@dataclass(frozen=True, repr=False)
class Reveal(Shown):
    """Comparison of a prediction with the capture, part by part."""

    prediction: Prediction
    truth: tuple[str, ...]
    right: tuple[bool, ...]

    def __repr__(self) -> str:
        lines = [wording.asked(self.prediction.asked)]
        parts = zip(self.prediction.asked.parts, self.prediction.answer, self.truth, self.right)
        for (name, _), value, truth, right in parts:
            what = "as said" if right else "other than said"
            lines.append(tell(what, name=wording.part(name), value=value, truth=truth))
        return "\n".join(lines)


def _other_target(capture: Capture, asked: Question) -> list[str]:
    """Return what is wrong where a question is about a device, and the capture is not of its code."""
    environment = capture.environment
    model = models.resolve(asked.target) if asked.target else None
    if model is None or (model.device == "cpu" and environment.isa == model.arch):
        return []
    if model.device != "cpu" and environment.device in (model.title, *model.torch_names):
        return []
    return [tell("other target", target=asked.target, device=model.title)]


def _names(asked: Question) -> str:
    return ", ".join(wording.part(name) for name, _ in asked.parts)


def predict(key: str, *answer: int) -> Prediction:
    """Keep the answer to a question of a lesson, before the code runs.

    Gives a ``Prediction``, whose ``reveal(capture)`` shows both. Where no answer is given, it is the one that was kept.
    Raises ``UsageError`` for a question that there is not, or an answer of another form.
    """
    wanted = question(key)
    key = wanted.key
    if not answer:
        kept = state.load().answer(key)
        if kept is None:
            raise UsageError(tell("answer first", key=key, names=_names(wanted)))
        return Prediction(wanted, kept)
    whole = all(isinstance(value, int) and not isinstance(value, bool) for value in answer)
    if len(answer) != len(wanted.parts) or not whole:
        what = "asks for" if len(wanted.parts) > 1 else "asks for one"
        count = len(wanted.parts)
        raise UsageError(tell(what, key=key, count=count, names=_names(wanted), answer=answer))
    if min(answer) < 0:  # every fact is a count
        raise UsageError(tell("negative", key=key, answer=answer))
    state.predicted(key, answer)
    return Prediction(wanted, answer)
