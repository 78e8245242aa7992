"""The grader's side of a student's process, which it starts for a notebook and asks about each exercise."""

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

START_SECONDS = 300.0
"""Seconds that a student's process may take to start and import torch, on top of the exercise's limit."""


@dataclass(frozen=True)
class Limits:
    """Limits for one exercise of one student, in seconds and bytes of memory."""

    seconds: float
    memory: int


@dataclass(frozen=True)
class Submitted:
    """A notebook and the exercises to mark in it, as plain data.

    Attributes:
        text: contents of the notebook.
        keys: keys of the exercises.
        folder: folder that its code can import from, ``""`` for the scratch folder.
        scratch: empty working directory of the process, deleted afterwards.
        language: language of the reasons.
        seconds, memory: as ``Limits``.
        measured: True for the leaderboard's figures instead of a mark.
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
    """Return the marks of a notebook by exercise. If an exercise ends the process, the next one gets a new process."""
    environment = {
        **os.environ,
        "COMPILE_LENS_GRADE_MEMORY": str(of.memory),
        # A shared cache folder would let one student's process run code that another one left there.
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
            result[key] = _ask(child, json.dumps({**common, "key": key}).encode(), of.seconds)
    finally:
        if child is not None:
            child.close()
    return result


def _ask(child: Child, request: bytes, seconds: float) -> Mark:
    try:
        if child.new:
            child.ask(b"{}", START_SECONDS)
        reply = child.ask(request, seconds)
        return Mark(str(reply["outcome"]), tuple(map(str, reply["reasons"])), tuple(reply["figures"]))
    except TooLong:
        return Mark("time limit", (message("too long", seconds=seconds),))
    except (ChildError, LookupError, TypeError) as error:
        return ended(error)


def ended(error: Exception) -> Mark:
    """Return the mark of an exercise whose process ended before it answered."""
    return Mark("ended", (" ".join(str(error).split()),))
