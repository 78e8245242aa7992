"""Slides and hand-outs are generated from the lessons' cells, with nothing left out or duplicated."""

from __future__ import annotations

import html
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

TUTORIALS = Path(__file__).resolve().parents[2] / "tutorials"
sys.path.insert(0, str(TUTORIALS))

pytest.importorskip("markdown_it", reason="markdown-it is not installed: pip install '.[docs]'")

from kit.handout import handout  # noqa: E402
from kit.lesson import Block, Lesson, Step, key_sentences, outputs, sentences  # noqa: E402
from kit.slides import _fitted, slides  # noqa: E402

LESSONS = [*sorted(TUTORIALS.glob("[0-9]*.ipynb")), *sorted(TUTORIALS.glob("zh/[0-9]*.ipynb"))]
NAMES = [str(path.relative_to(TUTORIALS)) for path in LESSONS]


def lesson(path: Path) -> Lesson:
    language = "zh" if path.parent.name == "zh" else "en"
    return Lesson(path.stem, nbformat.read(path, as_version=4).cells, language)


def words(page: str) -> str:
    """Return the text of a page, without blanks and without Markdown markup."""
    body = re.sub(r"<(style|script).*?</\1>|<[^>]+>", "", page, flags=re.S)
    return re.sub(r"[\s`*]|^\d+\. ", "", html.unescape(body), flags=re.M)


@pytest.mark.parametrize("path", LESSONS, ids=NAMES)
def test_a_lesson_has_what_its_sheets_are_made_of(path: Path) -> None:
    one = lesson(path)
    sheet, shown = words(handout(one)), words(slides(one))
    task_count = sum(cell.source.count("course.check(") for cell in one.cells if cell.cell_type == "code")
    assert len(one.tasks) == task_count >= 3
    sentences_to_take = re.findall(r"^\d\. (.+)$", one.take_home[1], re.M)
    assert len(sentences_to_take) == 3
    for text in (one.title, *one.tasks, *sentences_to_take):
        assert words(text) in sheet and words(text) in shown
    assert "src=" not in handout(one) and "http" not in re.sub(r'xmlns="[^"]+"', "", slides(one))


@pytest.mark.parametrize("path", LESSONS, ids=NAMES)
def test_all_code_of_the_experiment_is_on_slides(path: Path) -> None:
    one = lesson(path)
    shown = words(slides(one))
    ids = [cell.id for cell in one.cells]
    for cell in one.cells[: ids.index("exercises")]:
        if (
            cell.cell_type == "code"
            and cell.id not in ("install", "imports")
            and not cell.id.startswith("predict")
        ):
            for line in cell.source.split("\n"):
                assert words(html.escape(line)) in shown, (cell.id, line)


def test_a_rule_of_a_terminal_is_shortened() -> None:
    plain = f"── by masks {'─' * 88}\n  masks  launches"
    shown = nbformat.v4.new_output("display_data", {"text/plain": plain, "text/html": "<script>"})
    (block,) = outputs(nbformat.v4.new_code_cell(outputs=[shown]))
    assert block.plain == "── by masks ──\n  masks  launches"


def test_sentences_end_where_they_end() -> None:
    assert sentences("Run `a. b` now. **Which? And why?** It is 2.5 of it. (Or not.) Yes.") == [
        "Run `a. b` now.",
        "**Which? And why?**",
        "It is 2.5 of it.",
        "(Or not.)",
        "Yes.",
    ]
    assert sentences("先看。**哪个？为什么？**再看！") == ["先看。", "**哪个？为什么？**", "再看！"]


def test_a_long_text_is_cut_between_sentences() -> None:
    text = "First one. Second one. Third **bold** one. Fourth one.\n\n(An aside.)\n\nOther one. Last one."
    assert key_sentences(text, 1000) == text
    assert key_sentences(text, 58) == "First one. Second one. Third **bold** one.\n\nOther one."


def test_long_code_is_split_between_functions_and_whole() -> None:
    functions = [
        f"def f{n}(x):\n    " + "\n    ".join(f"x = x + {n}  # {k}" for k in range(9)) for n in range(8)
    ]
    code = "\n\n".join(functions)
    parts = list(_fitted(Step("long", (Block("text", "Look."), Block("code", code)))))
    shown = [block.content for part in parts for block in part if block.kind == "code"]
    assert len(parts) > 2 and [block.kind for block in parts[0]] == ["text", "code"]
    assert all(one.startswith("def f") for one in shown)
    assert "\n\n".join(shown) == code


def test_the_command_names_what_it_does_not_know(tmp_path: Path) -> None:
    command = [sys.executable, str(TUTORIALS / "lecture.py"), str(tmp_path), "--lessons", "99*"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and "no lesson matches '99*'" in done.stderr
    guide = (TUTORIALS / "INSTRUCTORS.md").read_text(encoding="utf-8")
    assert "python tutorials/lecture.py" in guide
