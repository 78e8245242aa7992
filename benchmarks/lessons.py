"""Measures the lessons' time: ``python benchmarks/lessons.py`` runs each from start to end, one after the other.

Each runs like a student's copy, in its own folder and its own kernel. The bar: all lessons of a language
in at most 10 minutes on two cores. Processor seconds depend less on the machine's other load.
"""

from __future__ import annotations

import argparse
import fnmatch
import tempfile
import time
from pathlib import Path

import nbclient
import nbformat
from processor_time import adopt, processor_seconds

LESSONS = Path(__file__).resolve().parents[1] / "tutorials"
BAR = 600.0


def timed(lesson: Path) -> tuple[float, float]:
    """Run a lesson; return wall and processor seconds. Raises what a cell raises."""
    book = nbformat.read(lesson, as_version=4)
    began, used = time.perf_counter(), processor_seconds()
    with tempfile.TemporaryDirectory() as folder:
        place = {"metadata": {"path": folder}}
        nbclient.NotebookClient(book, timeout=BAR, resources=place).execute()
    return time.perf_counter() - began, processor_seconds() - used


def main() -> None:
    """Print the time of each lesson, and the total."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--lang", choices=("en", "zh"), default="en", help="the language of the lessons")
    parser.add_argument("--lessons", default="*", metavar="PATTERN", help="the lessons, such as '01*'")
    given = parser.parse_args()
    files = sorted((LESSONS / "zh" if given.lang == "zh" else LESSONS).glob("[0-9]*.ipynb"))
    adopt()
    total = [0.0, 0.0]
    for lesson in (path for path in files if fnmatch.fnmatch(path.stem, given.lessons)):
        seconds, used = timed(lesson)
        total = [total[0] + seconds, total[1] + used]
        print(f"{lesson.stem:45} {seconds:6.1f} s, processors {used:6.1f} s", flush=True)
    print(f"{'all':45} {total[0]:6.1f} s, processors {total[1]:6.1f} s; bar: {BAR:.0f} s")


if __name__ == "__main__":
    main()
