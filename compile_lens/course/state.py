"""Progress: a small JSON file next to the notebook, which the student can read and delete."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..record.files import write_text
from .lessons import EXERCISES, QUESTIONS
from .wording import Shown, message

FILE = Path("course-progress.json")
"""Progress file in the folder where the notebook runs."""


@dataclass(frozen=True, repr=False)
class Progress(Shown):
    """Answers and attempts so far.

    Attributes:
        file: the progress file.
        predictions: answers by question.
        exercises: by exercise the number of attempts, whether it was right once, and the number of hints read.
    """

    file: Path
    predictions: dict[str, list[int]] = field(default_factory=dict)
    exercises: dict[str, dict[str, int]] = field(default_factory=dict)

    def attempts(self, key: str) -> int:
        """Return the number of attempts at an exercise."""
        return self.exercises.get(key, {}).get("attempts", 0)

    def solved(self, key: str) -> bool:
        """Return True if an exercise was right once."""
        return bool(self.exercises.get(key, {}).get("solved", 0))

    def answer(self, key: str) -> tuple[int, ...] | None:
        """Return the stored answer to a question, None if there is none."""
        numbers = self.predictions.get(key)
        return None if numbers is None else tuple(numbers)

    def __repr__(self) -> str:
        done = sum(self.solved(key) for key in EXERCISES)
        lines = [message("done", done=done, all=len(EXERCISES), file=self.file)]
        begun = {_lesson(key) for key in (*self.predictions, *self.exercises)}
        for lesson in dict.fromkeys(map(_lesson, EXERCISES)):
            if lesson in begun:
                answered = [self._answered(key) for key in QUESTIONS if _lesson(key) == lesson]
                tried = [self._tried(key) for key in EXERCISES if _lesson(key) == lesson]
                lines.append(message("lesson", lesson=lesson, parts=message("; ").join((*answered, *tried))))
        later = [one for one in dict.fromkeys(map(_lesson, EXERCISES)) if one not in begun]
        if later:
            lines.append(message("not begun", lessons=", ".join(later)))
        return "\n".join(lines)

    def _answered(self, key: str) -> str:
        answer = self.answer(key)
        if answer is None:
            return message("not answered", key=key)
        return message("answered", key=key, said=message(", ").join(f"{number:,}" for number in answer))

    def _tried(self, key: str) -> str:
        tries = self.attempts(key)
        # Further requests repeat the last hint.
        hints = min(self.exercises.get(key, {}).get("hints", 0), len(EXERCISES[key].hints))
        if not tries and not hints:
            return message("untried", key=key)
        outcome = message("is right" if self.solved(key) else "not yet")
        return message("tried", key=key, outcome=outcome, tries=tries, hints=hints)


def _lesson(key: str) -> str:
    return key.partition(".")[0]


def progress() -> Progress:
    """Return the answers and attempts so far, and their file; raise ``UsageError`` for a broken file."""
    return load()


def load() -> Progress:
    """Return the content of the progress file; empty progress if there is no file."""
    path = FILE.resolve()
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Progress(path)
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(message("broken", path=path, error=error)) from None
    predictions, exercises = (
        data.get(k) if isinstance(data, dict) else None for k in ("predictions", "exercises")
    )
    if not _numbers(predictions, list) or not _numbers(exercises, dict):
        raise UsageError(message("no progress", path=path))
    return Progress(path, predictions or {}, exercises or {})


def _numbers(data: Any, of: type) -> bool:
    """Return True for a dictionary of lists, or of dictionaries, of whole numbers."""
    if not isinstance(data, dict) or not all(isinstance(value, of) for value in data.values()):
        return False
    rows = (value.values() if isinstance(value, dict) else value for value in data.values())
    return all(isinstance(number, int) for row in rows for number in row)


def attempted(key: str, right: bool) -> None:
    """Count an attempt."""
    stored = load()
    one = stored.exercises.setdefault(key, {})
    one["attempts"] = one.get("attempts", 0) + 1
    one["solved"] = int(bool(one.get("solved", 0)) or right)
    _save(stored)


def hinted(key: str) -> int:
    """Count a hint and return the number of hints read."""
    stored = load()
    one = stored.exercises.setdefault(key, {})
    one["hints"] = one.get("hints", 0) + 1
    _save(stored)
    return one["hints"]


def predicted(key: str, answer: tuple[int, ...]) -> None:
    """Store an answer, replacing an earlier one."""
    stored = load()
    stored.predictions[key] = list(answer)
    _save(stored)


def _save(stored: Progress) -> None:
    data = {"predictions": stored.predictions, "exercises": stored.exercises}
    write_text(stored.file, json.dumps(data, indent=2) + "\n")
