"""Time the grader on a class: ``python benchmarks/grade.py --lesson 3 --students 40 --jobs 2``.

Of each eight students one left the lesson as it is, and the others wrote right programs. The last student's function
never ends. The bar: one lesson of a class of 40 in at most 10 minutes on two cores.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from compile_lens.course.grade.__main__ import Limits, grade

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tutorials"))

import assignments  # noqa: E402


def handed_in(folder: Path, lesson: Path, count: int) -> None:
    """Write the notebooks of a class."""
    untouched = lesson.read_text(encoding="utf-8")
    solved = json.dumps(assignments.source(lesson))
    endless = untouched.replace(f"    {assignments.STUB}", "    while True: pass", 1)
    for number in range(1, count + 1):
        text = endless if number == count else solved if number % 8 else untouched
        (folder / f"student-{number:02}.ipynb").write_text(text, encoding="utf-8")


def main() -> None:
    """Print the time of a class, and how often there was each outcome."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--lesson", type=int, default=3)
    parser.add_argument("--students", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    (lesson,) = (ROOT / "tutorials").glob(f"{given.lesson:02}-*.ipynb")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "class")
        folder.mkdir()
        handed_in(folder, lesson, given.students)
        began = time.perf_counter()
        rows = grade(folder, given.lesson, Path(place, "marks.csv"), Limits(120, 4 * 2**30), given.jobs)
        seconds = time.perf_counter() - began
    outcomes = Counter(mark.outcome for row in rows for mark in row.marks.values())
    print(f"lesson {given.lesson}: {len(rows)} students in {seconds:.0f} s with {given.jobs} jobs")
    print(", ".join(f"{outcome} {count}" for outcome, count in sorted(outcomes.items())))


if __name__ == "__main__":
    main()
