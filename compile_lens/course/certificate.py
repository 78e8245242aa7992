"""The certificate: progress as a page that names the lessons done, and says what it proves."""

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
    """Write a page that names the lessons done, by the file of ``progress()``, and return its path.

    A lesson is done when each of its exercises was right once. The page says that nobody watched: it is a summary of a
    file that its owner can edit. The ending of ``path`` chooses the form: .html .md .txt.

    Args:
        path: where it is written.
        name: whose it is; the page has a name only if one is given.

    Raises:
        UsageError: another ending, an unwritable place, or a broken file of progress.
    """
    return save(path, FORMS, lambda: document(progress(), name, datetime.date.today()))


def document(kept: Progress, name: str, day: datetime.date) -> Document:
    """Return the certificate as a Document."""
    lessons: dict[str, list[str]] = {}
    for key in EXERCISES:
        lessons.setdefault(key.partition(".")[0], []).append(key)
    done = [lesson for lesson, keys in lessons.items() if all(map(kept.solved, keys))]
    begun = [
        lesson for lesson, keys in lessons.items() if lesson not in done and any(map(kept.attempts, keys))
    ]
    tables = [
        Finding(key, message(key), "", sections=(_table(kept, lessons, chosen),), few=len(chosen), open=True)
        for key, chosen in (("lessons done", done), ("lessons begun", begun))
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


def _table(kept: Progress, lessons: dict[str, list[str]], chosen: list[str]) -> Table:
    head = tuple(
        map(message, ("column lesson", "column right", "column exercises", "column tries", "column hints"))
    )
    rows = tuple(Row((message(f"title {lesson}"), *_figures(kept, lessons[lesson]))) for lesson in chosen)
    return Table("", head, (TEXT, NUMBER, NUMBER, NUMBER, NUMBER), rows)


def _figures(kept: Progress, keys: list[str]) -> tuple[Quantity, ...]:
    hints = (min(kept.exercises.get(key, {}).get("hints", 0), len(EXERCISES[key].hints)) for key in keys)
    figures = (sum(map(kept.solved, keys)), len(keys), sum(map(kept.attempts, keys)), sum(hints))
    return tuple(map(Quantity, figures))
