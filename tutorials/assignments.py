"""Makes an nbgrader course of the lessons: ``python tutorials/assignments.py FOLDER``.

``FOLDER/source`` gets each lesson with the solutions of its exercises, between ``### BEGIN SOLUTION`` and
``### END SOLUTION``, and a cell for each that gives a point; ``FOLDER/release`` the students' copies, which
nbgrader's preprocessors make of it. Both come of the lessons here and of the exercises' data in
``compile_lens.course``, so that nothing is written twice. ``--lang zh`` takes the lessons in Chinese. ``--site`` makes
``FOLDER/site`` as well, the site that students read. A tool of lecturers: students need none of it.
"""

from __future__ import annotations

import argparse
import copy
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from compile_lens.course.lessons import EXERCISES

LESSONS = Path(__file__).resolve().parent
STUB = "return None  # your function"
STUBS = {"en": STUB, "zh": "return None  # 换成你的函数"}
BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
POINTS = 1

CONFIG = """\
c = get_config()  # noqa: F821
c.CourseDirectory.course_id = "compile-lens"
c.ClearSolutions.code_stub = {"python": %r}
c.ExecutePreprocessor.timeout = 240
"""

Notebook = dict[str, Any]


def source(lesson: Path) -> Notebook:
    """The lecturer's copy of a lesson: solved, with nbgrader's metadata, each exercise followed by a graded cell."""
    book: Notebook = json.loads(lesson.read_text(encoding="utf-8"))
    cells = []
    for cell in book["cells"]:
        key, stub = _exercise(cell)
        cells.append(_solved(cell, key, stub) if key else cell)
        if key:
            cells.append(_graded(cell, key))
    return {**book, "cells": cells}


def released(solved: Notebook, stub: str = STUB) -> Notebook:
    """The students' copy of a lecturer's, made by nbgrader's own preprocessors."""
    import nbformat
    from nbgrader import preprocessors as steps

    book = nbformat.reads(json.dumps(solved), as_version=4)
    made = (
        steps.ClearSolutions(code_stub={"python": stub}),
        steps.LockCells(),
        steps.ComputeChecksums(),
        steps.CheckCellMetadata(),
        steps.ClearOutput(),
    )
    for step in made:
        book, _ = step.preprocess(book, {"nbgrader": {"notebook": ""}})
    nbformat.validate(book)
    result: Notebook = json.loads(nbformat.writes(book))
    return result


def _exercise(cell: Notebook) -> tuple[str, str]:
    """The key of the exercise that a cell waits for, and its stub; two times ``""`` for every other cell."""
    text = "".join(cell["source"])
    stub = next((stub for stub in STUBS.values() if stub in text), "")
    if cell["cell_type"] != "code" or not stub:
        return "", ""
    (key,) = (key for key in EXERCISES if f'course.check("{key}", ' in text)
    return key, stub


def _solved(cell: Notebook, key: str, stub: str) -> Notebook:
    imports, body = re.split(r"def f\([\w, ]+\):\n", EXERCISES[key].solution, maxsplit=1)
    lines = [f"    {line}" for line in imports.split("\n") if line.strip()] + body.rstrip("\n").split("\n")
    solution = "\n".join((f"    {BEGIN}", *lines, f"    {END}"))
    text = "".join(cell["source"]).replace(f"    {stub}", solution)
    metadata = {"nbgrader": _metadata(f"exercise-{key}", solution=True)}
    return {**cell, "source": text.splitlines(keepends=True), "metadata": metadata}


def _graded(cell: Notebook, key: str) -> Notebook:
    name = "".join(cell["source"]).partition("def ")[2].partition("(")[0]
    return {
        **copy.deepcopy(cell),
        "id": f"point-{key.replace('.', '-')}",
        "source": [f'assert course.check("{key}", {name}), "{key} is not right yet"'],
        "metadata": {"nbgrader": _metadata(f"point-{key}", grade=True, locked=True, points=POINTS)},
    }


def _metadata(name: str, **more: Any) -> dict[str, Any]:
    plain = {"grade": False, "solution": False, "locked": False, "task": False, "schema_version": 3}
    return {"grade_id": name.replace(".", "-"), **plain, **more}


def write(folder: Path, language: str = "en") -> list[Path]:
    """Make the course in a folder, in English or, ``"zh"``, in Chinese; the files that were written."""
    written = [folder / "nbgrader_config.py"]
    folder.mkdir(parents=True, exist_ok=True)
    written[0].write_text(CONFIG % STUBS[language], encoding="utf-8")
    lessons = LESSONS / "zh" if language == "zh" else LESSONS
    for lesson in sorted(lessons.glob("*.ipynb")):
        solved = source(lesson)
        for kind, book in (("source", solved), ("release", released(solved, STUBS[language]))):
            file = folder / kind / lesson.stem / lesson.name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(book, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            written.append(file)
    return written


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path, help="where to make the course; its files there are replaced")
    parser.add_argument("--lang", choices=sorted(STUBS), default="en", help="the language of the lessons")
    parser.add_argument("--site", action="store_true", help="also make the site, in FOLDER/site")
    given = parser.parse_args()
    try:
        import nbgrader
    except ImportError:
        print("nbgrader is not installed: pip install '.[grading]'", file=sys.stderr)
        return 3
    written = write(given.folder, given.lang)
    print(f"nbgrader {nbgrader.__version__}: wrote {len(written)} files below {given.folder}", flush=True)
    return site(given.folder / "site") if given.site else 0


def site(folder: Path) -> int:
    """Make the site for students, with lessons that were run and without solutions; the exit code."""
    command = [sys.executable, str(LESSONS.parent / "docs" / "make_site.py"), str(folder)]
    return subprocess.run(command).returncode


if __name__ == "__main__":
    sys.exit(main())
