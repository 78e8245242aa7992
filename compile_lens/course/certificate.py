"""The certificate: progress as a page that lists the lessons done and states what it proves."""

from __future__ import annotations

import datetime
from pathlib import Path

from ..views.document import NUMBER, TEXT, Document, Finding, Quantity, Row, Table
from ..views.render.formats import save
from .lessons import EXERCISES
from .state import Progress, progress
from .wording import message

FORMS = {".html": "one page, for a browser", ".md": "Markdown", ".txt": "the text page"}


def certificate(path: str | Path, name: str = "") -> Path:
    """Write a page that lists the lessons done, from the file of ``progress()``, and return its path.

    A lesson is done if each of its exercises was right once. The page states that nobody supervised: it summarizes a
    file that its owner can edit. The suffix of ``path`` selects the form: .html .md .txt.

    Args:
        path: the file to write.
        name: the student's name, shown only if given.

    Raises:
        UsageError: for another suffix, an unwritable path, or a broken progress file.
    """
    return save(path, FORMS, lambda: document(progress(), name, datetime.date.today()))


def document(progress_so_far: Progress, name: str, day: datetime.date) -> Document:
    """Return the certificate as a Document."""
    lessons: dict[str, list[str]] = {}
    for key in EXERCISES:
        lessons.setdefault(key.partition(".")[0], []).append(key)
    done = [lesson for lesson, keys in lessons.items() if all(map(progress_so_far.solved, keys))]
    started = [
        lesson
        for lesson, keys in lessons.items()
        if lesson not in done and any(map(progress_so_far.attempts, keys))
    ]
    tables = [
        Finding(
            key,
            message(key),
            "",
            sections=(_table(progress_so_far, lessons, chosen),),
            few=len(chosen),
            open=True,
        )
        for key, chosen in (("lessons done", done), ("lessons begun", started))
        if chosen
    ]
    return Document(
        "certificate",
        message("certificate of", name=name) if name else message("certificate"),
        "compiled" if len(done) == len(lessons) else "partial",
        message("certified", done=len(done), all=len(lessons)),
        created=day.isoformat(),
        findings=tuple(tables),
        notes=(message("what a certificate says"), message("what a certificate does not say")),
        notes_title=message("notes"),
    )


def _table(progress_so_far: Progress, lessons: dict[str, list[str]], chosen: list[str]) -> Table:
    head = tuple(
        map(message, ("column lesson", "column right", "column exercises", "column tries", "column hints"))
    )
    rows = tuple(
        Row((message(f"title {lesson}"), *_figures(progress_so_far, lessons[lesson]))) for lesson in chosen
    )
    return Table("", head, (TEXT, NUMBER, NUMBER, NUMBER, NUMBER), rows)


def _figures(progress_so_far: Progress, keys: list[str]) -> tuple[Quantity, ...]:
    hints = (
        min(progress_so_far.exercises.get(key, {}).get("hints", 0), len(EXERCISES[key].hints)) for key in keys
    )
    figures = (
        sum(map(progress_so_far.solved, keys)),
        len(keys),
        sum(map(progress_so_far.attempts, keys)),
        sum(hints),
    )
    return tuple(map(Quantity, figures))
