"""The leaderboard of the capstone model: students ranked by launches and bytes moved, with the time of a call."""

from __future__ import annotations

import csv
import datetime
import io
import random
from dataclasses import dataclass
from pathlib import Path

from ...record.figures import MODELLED
from ...record.files import check_place, write_text
from ...views.document import (
    BYTES,
    NUMBER,
    SECONDS,
    TEXT,
    Absence,
    Document,
    Finding,
    Quantity,
    Row,
    Table,
)
from ...views.render.formats import form_of, save
from ..wording import message
from .marks import Mark, cell

KEY = "12.4"
"""The exercise that is ranked."""

FORMS = {
    ".html": "one page, for a browser",
    ".csv": "for a spreadsheet",
    ".md": "Markdown",
    ".txt": "the text page",
}


@dataclass(frozen=True)
class Place:
    """A student's place with launches, bytes moved and microseconds, None if no time could be measured."""

    number: int
    student: str
    launches: int
    nbytes: int
    microseconds: float | None


def places(marks: dict[str, Mark]) -> list[Place]:
    """Return the students with figures, best first, by launches, then bytes. Students equal in both share a place and
    are listed by time, which decides no place since it varies from run to run."""
    ranked = []
    for student, mark in marks.items():
        if mark.figures:
            launches, nbytes, microseconds = mark.figures
            ranked.append((int(launches or 0), int(nbytes or 0), microseconds, student))
    ranked.sort(key=lambda one: (one[0], one[1], one[2] is None, one[2], one[3]))
    numbers = {key: place for place, key in reversed([*enumerate((one[:2] for one in ranked), 1)])}
    return [Place(numbers[one[:2]], one[3], one[0], one[1], one[2]) for one in ranked]


def pseudonyms(students: list[str]) -> dict[str, str]:
    """Return a pseudonym for each student, numbered in random order so that it does not reveal the name."""
    numbers = list(range(1, len(students) + 1))
    random.SystemRandom().shuffle(numbers)
    return {student: message("pseudonym", number=number) for student, number in zip(students, numbers)}


def check(out: Path) -> None:
    """Raise ``UsageError`` if the leaderboard cannot be written to ``out``."""
    form_of(out, FORMS)
    check_place(out)


def write(marks: dict[str, Mark], out: Path) -> None:
    """Write the leaderboard in the format of ``out``'s file extension."""
    if out.suffix.lower() == ".csv":
        write_text(out, _csv(places(marks)))
    else:
        save(out, FORMS, lambda: document(marks, datetime.date.today()))


def document(marks: dict[str, Mark], day: datetime.date) -> Document:
    """Return the leaderboard as a Document."""
    ranked = places(marks)
    head = ("column place", "column name", "column launches", "column bytes", "column time")
    rows = tuple(
        Row(
            (
                Quantity(one.number),
                one.student,
                Quantity(one.launches),
                Quantity(one.nbytes, BYTES, MODELLED),
                Absence(message("column time"), message("not timed"))
                if one.microseconds is None
                else Quantity(one.microseconds / 1e6, SECONDS),
            )
        )
        for one in ranked
    )
    table = Table("", tuple(map(message, head)), (NUMBER, TEXT, NUMBER, NUMBER, NUMBER), rows)
    shown = Finding("places", message("places"), "", sections=(table,), few=len(rows), open=True)
    return Document(
        "leaderboard",
        message("leaderboard"),
        "compiled" if len(ranked) == len(marks) else "partial",
        message("in the table", ranked=len(ranked), all=len(marks)),
        created=day.isoformat(),
        findings=(shown,) if rows else (),
        notes=(message("who is in the table"), message("how places are given")),
        notes_title=message("notes"),
    )


def _csv(ranked: list[Place]) -> str:
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["place", "student", "launches", "bytes", "microseconds"])
    for one in ranked:
        time = "" if one.microseconds is None else f"{one.microseconds:.1f}"
        table.writerow([one.number, cell(one.student), one.launches, one.nbytes, time])
    return text.getvalue()
