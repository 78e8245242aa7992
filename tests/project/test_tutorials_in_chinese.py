"""The lessons in Chinese match those in English cell by cell, except for their prose."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

import lessons
import nbformat
import pytest
from bilingual import FENCE, WIDE, digits, is_chinese, numbers_in_chinese, numbers_in_english, same, told
from faults import for_each

pytestmark = pytest.mark.torch

FOLDER = lessons.FOLDER / "zh"
LESSONS = sorted(path.name for path in FOLDER.glob("*.ipynb"))


def cells(name: str) -> list[tuple[Any, Any]]:
    """Return the cells of a lesson in English and in Chinese."""
    both = (nbformat.read(folder / name, as_version=4).cells for folder in (lessons.FOLDER, FOLDER))
    return list(zip(*both, strict=True))


def prose(name: str) -> Iterator[tuple[str, str, str]]:
    """Return the id and both texts of each prose cell, without fenced code."""
    for english, chinese in cells(name):
        if english.cell_type == "markdown":
            yield english.id, *(FENCE.sub("", cell.source) for cell in (english, chinese))


def test_each_is_a_lesson_and_in_the_index() -> None:
    assert LESSONS and {path.name for path in lessons.FOLDER.glob("*.ipynb")} >= set(LESSONS)
    index = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"\]\((\d[\w-]+\.ipynb)\)", index)) == LESSONS


@for_each(LESSONS)
def test_it_has_the_same_cells_and_the_same_code(name: str) -> None:
    for english, chinese in cells(name):
        assert (english.id, english.cell_type, english.metadata) == (
            chinese.id,
            chinese.cell_type,
            chinese.metadata,
        )
        if english.cell_type == "code":
            assert not chinese.outputs and chinese.execution_count is None, (
                f"clear the outputs of {chinese.id}"
            )
            assert same(told(english.source), told(chinese.source)), chinese.id
        else:
            fenced = [FENCE.findall(cell.source) for cell in (english, chinese)]
            assert [ast.dump(told(code)) for code in fenced[0]] == [
                ast.dump(told(code)) for code in fenced[1]
            ]


@for_each(LESSONS)
def test_it_says_the_same_numbers(name: str) -> None:
    """Numbers in digits in English are in digits in Chinese, and the Chinese text adds no number."""
    for cell, english, chinese in prose(name):
        assert digits(english) <= digits(chinese), cell
        assert numbers_in_chinese(chinese) <= numbers_in_english(english), cell


@for_each(LESSONS)
def test_it_has_the_same_names_links_and_parts(name: str) -> None:
    for cell, english, chinese in prose(name):
        for pattern in (r"`([^`\n]+)`", r"\]\(([^)]+)\)", r"^(#+ |\d\. |- )", r"^\*\*([\d.]+)\*\*"):
            parts = [
                sorted(set(re.findall(pattern, text.replace('.story("zh")', ".story()"), re.M)))
                for text in (english, chinese)
            ]
            assert parts[0] == parts[1], cell
        assert len(english.split("\n\n")) == len(chinese.split("\n\n")), f"{cell}: paragraphs"


@for_each(LESSONS)
def test_it_is_written_in_chinese(name: str) -> None:
    """Every cell of prose is in Chinese, with Chinese punctuation."""
    for cell, _, chinese in prose(name):
        assert is_chinese(chinese), cell
        words = re.sub(r"`[^`\n]+`|\]\([^)]+\)", "", chinese)
        assert not re.search(f"[{WIDE}][,;:?!.()]|[,;:?!][{WIDE}]", words.replace("\n", "")), cell
        assert not re.search(r"[A-Za-z\d][\u4e00-\u9fff]|[\u4e00-\u9fff][A-Za-z\d]", words), cell


@for_each(LESSONS)
def test_what_it_links_to_is_there(name: str) -> None:
    text = "\n".join(cell.source for _, cell in cells(name))
    assert all((FOLDER / file).is_file() for file in re.findall(r"\]\(([\w-]+\.ipynb)\)", text))


CHANCE = r"(ipykernel_\d+/)?\d+\.py|tensor\(\[[^\]]*\]|\d+\.\d+"
"""Text that differs between two runs, or by a comment: positions of a notebook's functions, and random numbers."""


CLOCKED = {
    "11": ("calls", "spread", "later", "turns", "paid"),
    "13": ("time", "baseline"),
    "14": ("first-calls", "logs"),
}
"""Cells that print times, by the number of the lesson."""


@pytest.mark.slow
@pytest.mark.parametrize("name", LESSONS)
@pytest.mark.cases(full=1)
def test_it_runs_and_answers_in_chinese(name: str) -> None:
    """Every cell runs, from clean, without noise, and its exercises wait for an answer."""
    cells = {cell: lessons.text(outputs) for cell, outputs in lessons.run(f"zh/{name}").items()}
    waiting = [verdict for cell, verdict in cells.items() if cell.startswith("exercise-")]
    assert len(waiting) >= 3 and all(
        is_chinese(verdict) and verdict.startswith(f"{int(name[:2])}.") for verdict in waiting
    )
    assert is_chinese(cells["progress"])


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", LESSONS)
def test_it_runs_and_prints_the_same_numbers(name: str) -> None:
    """Its code is that of the lesson in English, which runs in every test run.

    Only whole numbers are compared: others are of random tensors. A page has times in it, and progress a file's path.
    """
    ours, theirs = lessons.run(f"zh/{name}"), lessons.run(name)
    left_out = {"progress", *CLOCKED.get(name[:2], ())}
    assert left_out <= set(ours)
    for cell, outputs in ours.items():
        if cell not in left_out and not any("text/html" in output.get("data", {}) for output in outputs):
            both = (lessons.text(one) for one in (outputs, theirs[cell]))
            chinese, english = (re.sub(CHANCE, "", text) for text in both)
            assert digits(english) <= digits(chinese) <= numbers_in_english(english), cell


@pytest.mark.parametrize(
    ("english", "chinese"),
    [
        ("x + 1", "x + 2"),
        ("f(x)", "f(x, 1)"),
        ("print('a graph')", "print('2 张图')"),
        ("print(f'{x} graphs')", "print(f'{y} 张图')"),
        ("print(f'{x} graphs')", "print(f'{x} {x} 张图')"),
        ("check('1.1', f)", "check('1.2', f)"),
        ("course.predict('1.graphs', 2)", "course.predict('图', 2)"),
        ("graph = 1", "图 = 1"),
        ("a\nb", "a"),
    ],
)
def test_other_code_is_found(english: str, chinese: str) -> None:
    assert not same(told(english), told(chinese))
    assert same(told(english), told(english))


def test_prose_in_code_may_be_another() -> None:
    english = "print(f'{x} of {y} graphs', 'times')  # yours\nprint(c.story())"
    assert same(told(english), told("print(f'{y} 张图中的 {x} 张', '次')\nprint(c.story(\"zh\"))"))


def test_a_number_of_its_own_is_found() -> None:
    assert numbers_in_english("Twenty-five of both, 4,000 and 2.5") == {25, 2, 4000, 2.5}
    assert numbers_in_chinese("三角函数：两个，4,000 与 2.5") == {2, 4000, 2.5}
    assert numbers_in_chinese("十次") == {10}
