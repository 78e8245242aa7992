"""The lessons, read and run as a student would."""

from __future__ import annotations

import copy
import functools
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from bilingual import NUMBERS

from compile_lens.course.lessons import EXERCISES

nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed: pip install '.[dev]'")
nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed: pip install '.[dev]'")

FOLDER = Path(__file__).resolve().parents[2] / "tutorials"

SCREEN_LINES = 45
"""Lines of text on a 1280×720 screen."""

SCREEN_COLUMNS = 120
"""Characters per line on that screen; JupyterLab wraps longer lines."""


def named(number: str) -> str:
    """Return the file name of a lesson by its number, ``"03"``."""
    (lesson,) = FOLDER.glob(f"{number}-*.ipynb")
    return lesson.name


def prose(name: str) -> dict[str, str]:
    """Return the source of every cell by its id."""
    return {cell.id: cell.source for cell in nbformat.read(FOLDER / name, as_version=4).cells}


def watched(name: str) -> list[str]:
    """Return the ids of cells that watch a program, and of cells right after that use it; earlier compiles matter."""
    code = [cell for cell in nbformat.read(FOLDER / name, as_version=4).cells if cell.cell_type == "code"]
    ids: list[str] = []
    for before, cell in zip([None, *code], code):
        follows = before is not None and before.id in ids and "program." in cell.source
        if "compile_lens.watch(" in cell.source or follows:
            ids.append(cell.id)
    return ids


@functools.cache
def run(name: str) -> Mapping[str, Any]:
    """Return the outputs of every code cell by its id; fail if one writes to stderr or is taller than two screens.

    Cells that depend on the compiler's state are run once more at the end, as ``"again-"`` and their id.
    """
    lesson = nbformat.read(FOLDER / name, as_version=4)
    lesson.cells += [_again(cell) for cell in lesson.cells if cell.id in watched(name)]
    _execute(lesson)
    outputs = {cell.id: cell.outputs for cell in lesson.cells if cell.cell_type == "code"}
    for cell, shown in outputs.items():
        assert not [o.text for o in shown if o.get("name") == "stderr" and o.text], cell
        if not any({"text/html", "image/svg+xml"} & {*o.get("data", {})} for o in shown):
            rows = sum(len(line) // SCREEN_COLUMNS + 1 for line in text(shown).splitlines())
            assert rows <= 2 * SCREEN_LINES, f"{cell} is too tall"
    return outputs


def run_twice(name: str) -> dict[str, Any]:
    """Return the outputs of every code cell's second run by its id; each cell runs twice in a row."""
    lesson = nbformat.read(FOLDER / name, as_version=4)
    lesson.cells = [one for cell in lesson.cells if cell.cell_type == "code" for one in (_again(cell), cell)]
    _execute(lesson)
    return {cell.id: cell.outputs for cell in lesson.cells[1::2]}


def _again(cell: Any) -> Any:
    made = copy.deepcopy(cell)
    made.id = f"again-{cell.id}"
    return made


def _execute(lesson: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        nbclient.NotebookClient(
            lesson,
            timeout=600,
            startup_timeout=300,
            kernel_name="python3",
            resources={"metadata": {"path": folder}},
        ).execute()


def text(outputs: Any) -> str:
    """Return what a cell printed, followed by its result as text."""
    return "".join(
        o.text if o.output_type == "stream" else o.get("data", {}).get("text/plain", "") for o in outputs
    )


def said(cell: str, pattern: str) -> tuple[int, ...]:
    """Return the numbers, in words or digits, that the pattern's groups match in the prose of a cell."""
    match = re.search(pattern, cell)
    assert match, pattern
    return tuple(int(w.replace(",", "")) if w[0].isdigit() else NUMBERS[w.lower()] for w in match.groups())


def exercises(name: str) -> list[str]:
    """Return the keys of a lesson's exercises; the prose must contain their tasks word for word."""
    tasks = "\n".join(prose(name).values())
    keys = [key for key in EXERCISES if key.partition(".")[0] == str(int(name[:2]))]
    assert len(keys) >= 3
    for key in keys:
        assert f"**{key}** {EXERCISES[key].task}" in tasks
    return keys


def exercises_wait(name: str) -> None:
    """Assert that the cells that check the exercises wait for a function."""
    for key in exercises(name):
        verdict = text(run(name)[f"exercise-{key[-1]}"])
        assert verdict.startswith(f"{key}: not yet.") and "the function is still empty" in verdict
