"""Measures the grader's time on a class: ``python benchmarks/grade.py --lesson 3 --students 40 --jobs 2``.

``--lesson all --students 4`` marks a small class in every lesson, and reports the processor time that 40 students
would need. Of each eight students one left the lesson unchanged, and the others wrote correct programs. In a class of
more than eight, the last student's function never ends. The bars: one lesson of a class of 40 in at most 10 minutes
on two cores, and all lessons in at most two hours.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from processor_time import adopt, processor_seconds

from compile_lens.course.grade.__main__ import Limits, grade

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tutorials"))

import assignments  # noqa: E402

CLASS, SMALL = 40, 8
LIMITS = Limits(120, 4 * 2**30)


def texts(number: int, count: int) -> list[str]:
    """Return the notebooks of a class for a lesson."""
    (lesson,) = (ROOT / "tutorials").glob(f"{number:02}-*.ipynb")
    untouched = lesson.read_text(encoding="utf-8")
    solved = json.dumps(assignments.source(lesson))
    class_ = [solved if student % SMALL else untouched for student in range(1, count + 1)]
    if count > SMALL:
        class_[-1] = untouched.replace(f"    {assignments.STUB}", "    while True: pass", 1)
    return class_


def timed(number: int, notebooks: list[str], jobs: int) -> tuple[float, float, str]:
    """Mark a class in one lesson; return wall and processor seconds, and the count of each outcome."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "class")
        folder.mkdir()
        for student, text in enumerate(notebooks, 1):
            (folder / f"student-{student:02}.ipynb").write_text(text, encoding="utf-8")
        began, used = time.perf_counter(), processor_seconds()
        rows = grade(folder, number, Path(place, "marks.csv"), LIMITS, jobs, say=lambda _: None)
        seconds, used = time.perf_counter() - began, processor_seconds() - used
    outcomes = Counter(mark.outcome for row in rows for mark in row.marks.values())
    return seconds, used, ", ".join(f"{outcome} {count}" for outcome, count in sorted(outcomes.items()))


def main() -> None:
    """Print the time of a class in a lesson, or in all lessons, and the count of each outcome."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--lesson", default="3", help='a number, or "all"')
    parser.add_argument("--students", type=int, default=CLASS)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    adopt()
    there = sorted(int(path.name[:2]) for path in (ROOT / "tutorials").glob("[0-9]*.ipynb"))
    numbers = there if given.lesson == "all" else [int(given.lesson)]
    students, jobs = given.students, given.jobs
    _, start, _ = timed(numbers[0], ["{}"] * jobs, jobs)
    print(f"start of the grader for {jobs} jobs: processors {start:.1f} s", flush=True)
    clock, processors, of_class = 0.0, 0.0, 0.0
    for number in numbers:
        seconds, used, outcomes = timed(number, texts(number, students), jobs)
        each = (used - start) / students
        clock, processors, of_class = clock + seconds, processors + used, of_class + start + CLASS * each
        print(
            f"lesson {number:2}: {students} students in {seconds:.0f} s with {jobs} jobs; "
            f"processors {used:.0f} s, {each:.2f} s a student; {outcomes}",
            flush=True,
        )
    print(
        f"{len(numbers)} lessons: {clock:.0f} s, processors {processors:.0f} s; "
        f"a class of {CLASS}: {of_class / jobs / 60:.1f} minutes on {jobs} processors"
    )


if __name__ == "__main__":
    main()
