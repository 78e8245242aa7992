"""A class that uses nbgrader: copies are released, submitted and graded by nbgrader's own commands."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
LESSON = "01-one-line-four-stages"
ANSWERS = {
    "1.1": "    return x.sin().cos().tanh().exp().sqrt().neg()",  # not the text of any solution
    "1.2": "    return x.sin() + x.cos()",  # the misconception: two calls of Dynamo are two kernels
}
"""Answers of a student who left the third exercise unchanged."""


def _nbgrader(folder: Path, *command: str) -> None:
    """Run nbgrader as a lecturer does, in an active environment: it calls tools of its own by name."""
    tools = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["nbgrader", *command], cwd=folder, env=tools, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _answered(copy: Path, answers: dict[str, str], stub: str) -> str:
    book = json.loads(copy.read_text(encoding="utf-8"))
    for cell in book["cells"]:
        text = "".join(cell["source"])
        key = re.search(r'course\.check\("([\d.]+)", ', text)
        if key and key[1] in answers and stub in text:
            cell["source"] = text.replace(f"    {stub}", answers[key[1]])
    return json.dumps(book)


def test_a_class_is_graded(tmp_path: Path) -> None:
    pytest.importorskip("nbgrader", reason="nbgrader is not installed: pip install '.[grading]'")
    sys.path.insert(0, str(ROOT / "tutorials"))
    import assignments

    course = tmp_path / "course"
    assignments.write(course)
    shutil.rmtree(course / "release")  # nbgrader's own command recreates it
    _nbgrader(course, "generate_assignment", LESSON)
    copy = course / "release" / LESSON / f"{LESSON}.ipynb"
    assert "SOLUTION" not in copy.read_text(encoding="utf-8")
    handed_in = {
        "solved": (course / "source" / LESSON / copy.name).read_text(encoding="utf-8"),
        "tried": _answered(copy, ANSWERS, assignments.STUB),
        "untouched": copy.read_text(encoding="utf-8"),
    }
    for student, text in handed_in.items():
        folder = course / "submitted" / student / LESSON
        folder.mkdir(parents=True)
        (folder / copy.name).write_text(text, encoding="utf-8")
    _nbgrader(course, "autograde", LESSON, "--create")
    _nbgrader(course, "export", "--to", "grades.csv")
    with (course / "grades.csv").open(encoding="utf-8") as file:
        rows = {row["student_id"]: (row["score"], row["max_score"]) for row in csv.DictReader(file)}
    assert rows == {"solved": ("3.0", "3.0"), "tried": ("1.0", "3.0"), "untouched": ("0.0", "3.0")}
