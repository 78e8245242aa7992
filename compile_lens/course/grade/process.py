"""A student's process, as the grader sees it: it is started for a notebook, queried about each exercise, and ended."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from ...child import fork, launcher
from ...child.child import Child, Start, TooLong
from ...errors import ChildError
from ..lessons import EXERCISES
from ..wording import message
from .marks import Mark

WORKER = "compile_lens.course.grade.marking"

START = 300.0
"""Seconds in which a student's process has to start and to import torch; they are not the exercise's."""


@dataclass(frozen=True)
class Limits:
    """Limits of one exercise of one student: seconds, and bytes of memory."""

    seconds: float
    memory: int


@dataclass(frozen=True)
class Submitted:
    """A notebook and what is to be marked of it, as plain data.

    Attributes:
        text: the notebook.
        keys: the exercises.
        folder: where its code imports from, ``""`` for the scratch folder alone.
        scratch: an empty folder that the process stands in, and that is deleted afterwards.
        language: the language of the reasons.
        seconds, memory: as ``Limits``.
        measured: whether the figures of the class's table are wanted, instead of a mark.
    """

    text: str
    keys: tuple[str, ...]
    folder: str
    scratch: str
    language: str
    seconds: float
    memory: int
    measured: bool = False


def marks(of: Submitted, start: Start = launcher.start) -> dict[str, Mark]:
    """Return the marks of a notebook. After an exercise that ended the process the next one gets a new process."""
    environment = {
        **os.environ,
        "COMPILE_LENS_GRADE_MEMORY": str(of.memory),
        # Code that another student's process left in a common folder is not to be run.
        "TORCHINDUCTOR_CACHE_DIR": str(Path(of.scratch, "inductor")),
    }
    if start is fork.start and any(EXERCISES[key].target for key in of.keys):
        environment["COMPILE_LENS_GRADE_FORK"] = "1"
    common = {
        "text": of.text,
        "folder": of.folder or of.scratch,
        "language": of.language,
        "measured": of.measured,
    }
    result: dict[str, Mark] = {}
    child: Child | None = None
    try:
        for key in of.keys:
            if child is None or not child.alive:
                child = Child(WORKER, environment, of.scratch, show=False, start=start)
            result[key] = _asked(child, json.dumps({**common, "key": key}).encode(), of.seconds)
    finally:
        if child is not None:
            child.close()
    return result


def _asked(child: Child, request: bytes, seconds: float) -> Mark:
    try:
        if child.new:
            child.ask(b"{}", START)
        reply = child.ask(request, seconds)
        return Mark(str(reply["outcome"]), tuple(map(str, reply["reasons"])), tuple(reply["figures"]))
    except TooLong:
        return Mark("time limit", (message("too long", seconds=seconds),))
    except (ChildError, LookupError, TypeError) as error:
        return ended(error)


def ended(error: Exception) -> Mark:
    """Return the mark of an exercise whose process ended before it answered."""
    return Mark("ended", (" ".join(str(error).split()),))
