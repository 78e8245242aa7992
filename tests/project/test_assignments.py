"""The course for nbgrader: lessons with solutions, and student copies without them."""

from __future__ import annotations

import ast
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from compile_lens.course.lessons import EXERCISES

ROOT = Path(__file__).resolve().parents[2]
LESSONS = sorted((ROOT / "tutorials").glob("*.ipynb"))
sys.path.insert(0, str(ROOT / "tutorials"))

import assignments  # noqa: E402


def _code(book: dict[str, Any], prefix: str) -> dict[str, str]:
    cells = (
        c for c in book["cells"] if c["metadata"].get("nbgrader", {}).get("grade_id", "").startswith(prefix)
    )
    return {c["metadata"]["nbgrader"]["grade_id"]: "".join(c["source"]) for c in cells}


SOLVED = {lesson.name: assignments.source(lesson) for lesson in LESSONS}


def test_every_exercise_is_in_one_lesson() -> None:
    keys = [key for book in SOLVED.values() for key in _code(book, "exercise-")]
    assert sorted(keys) == sorted(f"exercise-{key.replace('.', '-')}" for key in EXERCISES)
    points = [key for book in SOLVED.values() for key in _code(book, "point-")]
    assert sorted(points) == sorted(f"point-{key.replace('.', '-')}" for key in EXERCISES)


@pytest.mark.cases(full=5)
@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize("key", EXERCISES)
def test_a_solved_cell_gives_its_point(key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lecturer's copy passes unchanged, its graded cell included; the student's stub does not."""
    monkeypatch.chdir(tmp_path)
    import torch

    from compile_lens import course

    name = key.replace(".", "-")
    (book,) = (book for book in SOLVED.values() if f"exercise-{name}" in _code(book, "exercise-"))
    solved, point = _code(book, "exercise-")[f"exercise-{name}"], _code(book, "point-")[f"point-{name}"]
    head, _, rest = solved.partition("    ### BEGIN SOLUTION\n")
    stub = f"{head}    {assignments.STUB}{rest.partition('### END SOLUTION')[2]}"
    scope: dict[str, Any] = {"torch": torch, "course": course}
    exec(solved, scope)
    exec(point, scope)
    exec(stub, scope)
    with pytest.raises(AssertionError, match=f"{key} is not right yet"):
        exec(point, scope)


def test_a_solution_is_marked_and_is_code() -> None:
    chinese = [assignments.source(lesson.parent / "zh" / lesson.name) for lesson in LESSONS]
    assert sorted(key for book in chinese for key in _code(book, "exercise-")) == sorted(
        key for book in SOLVED.values() for key in _code(book, "exercise-")
    )
    for book in (*SOLVED.values(), *chinese):
        for text in _code(book, "exercise-").values():
            ast.parse(text)
            assert text.count("### BEGIN SOLUTION") == text.count("### END SOLUTION") == 1
            assert not any(stub in text for stub in assignments.STUBS.values())


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_students_copy_is_the_lesson(tmp_path: Path, language: str) -> None:
    """nbgrader turns the solved lesson back into the lesson, except for its metadata and the graded cells."""
    pytest.importorskip("nbgrader", reason="nbgrader is not installed: pip install '.[grading]'")
    written = assignments.write(tmp_path / "course", language)
    assert len(written) == 1 + 2 * len(LESSONS)
    config = (tmp_path / "course" / "nbgrader_config.py").read_text(encoding="utf-8")
    assert f'"python": {assignments.STUBS[language]!r}' in config
    for english in LESSONS:
        lesson = english if language == "en" else english.parent / "zh" / english.name
        copy = json.loads(
            (tmp_path / "course/release" / lesson.stem / lesson.name).read_text(encoding="utf-8")
        )
        kept = json.loads(lesson.read_text(encoding="utf-8"))
        cells = [c for c in copy["cells"] if not c["metadata"].get("nbgrader", {}).get("grade")]
        same = ("cell_type", "id")
        assert [[c[k] for k in same] for c in cells] == [[c[k] for k in same] for c in kept["cells"]]
        assert ["".join(c["source"]) for c in cells] == ["".join(c["source"]) for c in kept["cells"]]
        graded = [c for c in copy["cells"] if c["metadata"].get("nbgrader", {}).get("grade")]
        assert len(graded) == sum(key.startswith(f"{int(lesson.name[:2])}.") for key in EXERCISES)
        assert all(c["metadata"]["editable"] is False for c in graded), lesson.name
        assert "SOLUTION" not in json.dumps(copy)


def test_the_guide_has_a_section_for_each_lesson() -> None:
    guide = (ROOT / "tutorials" / "INSTRUCTORS.md").read_text(encoding="utf-8")
    titles = []
    for lesson in LESSONS:
        match = re.search(rf"^### {int(lesson.name[:2])}\. (.+)$", guide, re.M)
        assert match, f"nothing is said of {lesson.name}"
        titles.append(match[1])
    index = (ROOT / "tutorials" / "README.md").read_text(encoding="utf-8")
    assert all(f" {title}](" in index for title in titles)
    assert (
        "python tutorials/assignments.py" in guide and assignments.BEGIN in guide and assignments.END in guide
    )
