"""Marks of a class, one row per student: JSON, from which a later run continues, and CSV for a spreadsheet."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ...errors import UsageError
from ...record.files import plain_json, write_text

FORMAT = 1

JUDGED = {"right": 1, "wrong": 0, "empty": 0, "missing": 0}
"""Points by outcome. The other outcomes are no verdict: ``raised`` outside the function, ``no notebook``,
``time limit``, ``ended`` and ``altered``."""


@dataclass(frozen=True)
class Mark:
    """Result of one exercise: its outcome with the reasons, and ``figures`` for the leaderboard."""

    outcome: str
    reasons: tuple[str, ...] = ()
    figures: tuple[float | None, ...] = ()

    @property
    def points(self) -> int | None:
        """1 or 0; None without a verdict, so that a person has to look."""
        return JUDGED.get(self.outcome)


@dataclass(frozen=True)
class Row:
    """A student's marks by exercise, and the digest of the marked files and versions."""

    student: str
    digest: str
    marks: dict[str, Mark]

    @property
    def judged(self) -> bool:
        """True if every exercise has a verdict."""
        return all(mark.points is not None for mark in self.marks.values())


def save(rows: list[Row], keys: list[str], out: Path) -> None:
    """Write the rows to ``out`` as CSV and to the JSON file beside it."""
    data = {"format": FORMAT, "exercises": keys, "students": [asdict(row) for row in rows]}
    write_text(out.with_suffix(".json"), plain_json(data))
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["student", *keys, "points", "without a verdict", "notes"])
    for row in rows:
        points = [row.marks[key].points for key in keys]
        notes = [f"{key} {mark.outcome}: {' '.join(mark.reasons)}" for key, mark in row.marks.items()]
        shown = [note for note, point in zip(notes, points) if point != 1]
        figures = [sum(point or 0 for point in points), points.count(None)]
        table.writerow(
            [cell(row.student), *("" if p is None else p for p in points), *figures, " | ".join(shown)]
        )
    write_text(out.with_suffix(".csv"), text.getvalue())


def cell(name: str) -> str:
    """Return a name as spreadsheet text, quoted if a spreadsheet would take it for a formula."""
    return f"'{name}" if name[:1] in "=+-@" else name


def load(out: Path, keys: list[str]) -> dict[str, Row]:
    """Return the rows of an earlier run by student, if any. Raises ``UsageError`` if its file does not fit."""
    path = out.with_suffix(".json")
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["format"] != FORMAT or data["exercises"] != keys:
            raise ValueError("it holds marks of other exercises")
        rows = [_row(one) for one in data["students"]]
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise UsageError(f"{path} cannot be continued ({error}); give another --out, or delete it") from None
    return {row.student: row for row in rows}


def _row(data: dict[str, Any]) -> Row:
    marks = {key: Mark(one["outcome"], tuple(one["reasons"])) for key, one in data["marks"].items()}
    return Row(data["student"], data["digest"], marks)
