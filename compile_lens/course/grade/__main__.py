"""The grader's command line: ``python -m compile_lens.course.grade FOLDER --lesson 3 --jobs 2 --out marks.csv``, or
``--leaderboard leaderboard.html`` for the table of the capstone."""

from __future__ import annotations

import argparse
import hashlib
import os
import queue
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from importlib import metadata
from pathlib import Path

from ...child.fork import FORKS
from ...child.limits import parse_limit
from ...errors import LensError, UsageError
from ...versions import __version__
from ...views.language import TAGS
from .. import wording
from ..lessons import EXERCISES
from ..wording import message
from . import leaderboard, process
from .fork_server import ForkServer
from .marks import Mark, Row, load, save
from .process import Limits, Submitted

VERSIONS = (__version__.encode(), metadata.version("torch").encode())
"""Versions of this package and torch, which are part of the digest of a marked notebook."""

MAX_NOTEBOOK_BYTES = 20_000_000
"""Largest notebook that is read, in bytes."""


def students(folder: Path) -> list[Path]:
    """Return each student's folder or notebook, sorted by name. Raises ``UsageError`` if there is none."""
    if not os.path.isdir(folder):
        raise UsageError(
            f"{folder} is not a folder; give the one that has a folder or a notebook for each student"
        )
    found = [
        one
        for one in sorted(folder.iterdir())
        if not one.name.startswith(".") and (one.is_dir() or one.suffix == ".ipynb")
    ]
    if not found:
        raise UsageError(f"{folder} has no folder and no notebook in it: one for each student is needed")
    return found


def notebook(handed_in: Path, lesson: int) -> Path:
    """Return a student's notebook for a lesson: the only one, or the one with the lesson's number in its name. Raises
    ``UsageError`` if there is none, more than one, or it is too large."""
    there = [handed_in]
    if os.path.isdir(handed_in):
        there = [one for one in sorted(handed_in.rglob("*.ipynb")) if ".ipynb_checkpoints" not in one.parts]
    # A link may lead to somebody else's work, and reading a device or pipe may never end.
    there = [one for one in there if one.is_file() and not one.is_symlink()]
    if not there:
        raise UsageError(message("without notebook"))
    numbered = [one for one in there if f"{lesson:02}-" in one.name] if len(there) > 1 else there
    if len(numbered) != 1:
        raise UsageError(message("several notebooks", lesson=lesson))
    if numbered[0].stat().st_size > MAX_NOTEBOOK_BYTES:
        raise UsageError(message("too large", bytes=MAX_NOTEBOOK_BYTES))
    return numbered[0]


def mark(handed_in: Path, lesson: int, marker: Marker, earlier: Row | None = None) -> Row:
    """Return a student's row; ``earlier`` is reused if its digest is the same and every exercise has a verdict."""
    keys = exercises(lesson)
    student = _student_name(handed_in)
    try:
        path = notebook(handed_in, lesson)
        data = path.read_bytes()
        beside = [
            one.read_bytes()
            for one in sorted(path.parent.glob("*.py"))
            if handed_in.is_dir() and one.is_file()
        ]
    except (UsageError, OSError) as error:
        return Row(student, "", dict.fromkeys(keys, Mark("no notebook", (str(error),))))
    digest = hashlib.sha256(b"\0".join([*VERSIONS, data, *beside])).hexdigest()
    if earlier is not None and earlier.digest == digest and earlier.judged:
        return earlier
    return Row(student, digest, marker.marks(data, keys, path.parent if handed_in.is_dir() else None))


def figures(handed_in: Path, key: str, marker: Marker) -> Mark:
    """Return a mark with the measured figures of a student's function, or with the reasons why it has none."""
    try:
        path = notebook(handed_in, int(key.partition(".")[0]))
        data = path.read_bytes()
    except (UsageError, OSError) as error:
        return Mark("no notebook", (str(error),))
    folder = path.parent if handed_in.is_dir() else None
    return marker.marks(data, [key], folder, measured=True)[key]


def _student_name(handed_in: Path) -> str:
    return handed_in.stem if handed_in.is_file() else handed_in.name


class Marker:
    """Marks notebooks one at a time, each in a process forked from a server where possible, else in a new one."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._server = ForkServer() if FORKS else None

    def marks(
        self, notebook: bytes, keys: list[str], folder: Path | None, measured: bool = False
    ) -> dict[str, Mark]:
        """Return the marks of a notebook by exercise; its code can import from ``folder``."""
        with tempfile.TemporaryDirectory() as scratch:
            of = Submitted(
                notebook.decode("utf-8", "replace"),
                tuple(keys),
                str(folder or ""),
                scratch,
                "zh" if wording.chinese() else "en",
                self._limits.seconds,
                self._limits.memory,
                measured,
            )
            return process.marks(of) if self._server is None else self._server.marks(of)

    def __enter__(self) -> Marker:
        return self

    def __exit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()


def exercises(lesson: int) -> list[str]:
    """Return the keys of a lesson's exercises. Raises ``UsageError`` if the lesson does not exist."""
    keys = [key for key in EXERCISES if key.partition(".")[0] == str(lesson)]
    if not keys:
        lessons = dict.fromkeys(key.partition(".")[0] for key in EXERCISES)
        raise UsageError(f"there is no lesson {lesson}; there are {', '.join(lessons)}")
    return keys


def grade(
    folder: Path, lesson: int, out: Path, limits: Limits, jobs: int = 2, say: Callable[[str], None] = print
) -> list[Row]:
    """Mark a class, ``jobs`` students at a time, and save all rows so far to ``out`` after each student."""
    keys, handed_in = exercises(lesson), students(folder)
    kept = load(out, keys)
    rows: dict[Path, Row] = {}
    lock = threading.Lock()
    idle: queue.SimpleQueue[Marker] = queue.SimpleQueue()

    def one(path: Path) -> None:
        marker = idle.get()
        try:
            row = mark(path, lesson, marker, kept.get(_student_name(path)))
        finally:
            idle.put(marker)
        with lock:
            rows[path] = row
            save([rows[path] for path in handed_in if path in rows], keys, out)
            marks = ", ".join(f"{key} {mark.outcome}" for key, mark in row.marks.items())
            say(f"{len(rows)}/{len(handed_in)} {row.student}: {marks}")

    with ExitStack() as markers, ThreadPoolExecutor(jobs) as pool:
        for _ in range(jobs):
            idle.put(markers.enter_context(Marker(limits)))
        for done in [pool.submit(one, path) for path in handed_in]:
            done.result()
    return [rows[path] for path in handed_in]


def rank(folder: Path, out: Path, limits: Limits, hidden: bool, say: Callable[[str], None] = print) -> None:
    """Measure a class and write the leaderboard; students run one at a time, so that none slows another down."""
    leaderboard.check(out)
    handed_in = students(folder)
    shown = {_student_name(path): _student_name(path) for path in handed_in}
    names = leaderboard.pseudonyms(list(shown)) if hidden else shown
    marks = {}
    with Marker(limits) as marker:
        for number, path in enumerate(handed_in, 1):
            name = names[_student_name(path)]
            marks[name] = result = figures(path, leaderboard.KEY, marker)
            known = f" ({name})" if hidden else ""
            line = f"{number}/{len(handed_in)} {_student_name(path)}{known}: {result.outcome}"
            say(f"{line} {' '.join(result.reasons)}".rstrip())
    leaderboard.write(marks, out)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 0 if everybody was marked, 2 for bad usage, 4 if an exercise has no verdict."""
    parser = argparse.ArgumentParser(
        "python -m compile_lens.course.grade", description="Mark one lesson of a class."
    )
    parser.add_argument("folder", type=Path, help="a folder or a notebook for each student is in it")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--lesson", type=int, help="the number of the lesson")
    what.add_argument(
        "--leaderboard",
        type=Path,
        metavar="FILE",
        help="make the table of the capstone: .html, .csv, .md or .txt",
    )
    parser.add_argument("--pseudonyms", action="store_true", help="hide the names in the table")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("marks.csv"),
        help="file of the table; a .json next to it has all figures",
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="students at a time")
    parser.add_argument(
        "--seconds", type=parse_limit, default=120, help="the most for one exercise (%(default)s)"
    )
    parser.add_argument(
        "--memory", type=parse_limit, default=4, help="GiB, the most for one process (%(default)s)"
    )
    parser.add_argument("--lang", choices=[*TAGS], default="en", help="the language of the reasons")
    given = parser.parse_args(argv)
    wording.language(given.lang)
    limits = Limits(given.seconds, int(given.memory * 2**30))
    try:
        if given.leaderboard is not None:
            rank(given.folder, given.leaderboard, limits, given.pseudonyms)
            return 0
        rows = grade(given.folder, given.lesson, given.out, limits, max(given.jobs, 1))
    except LensError as error:
        print(error, file=sys.stderr)
        return 2
    return 0 if all(row.judged for row in rows) else 4


if __name__ == "__main__":
    sys.exit(main())
