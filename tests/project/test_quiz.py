"""The quiz: five questions for each lesson, in both languages, with answers computed by torch itself."""

from __future__ import annotations

import logging
import re
import sys
from collections import Counter
from pathlib import Path

import nbformat
import pytest
import quiz_answers_on  # noqa: F401
from bilingual import is_chinese
from quiz_answers import ANSWERS

TUTORIALS = Path(__file__).resolve().parents[2] / "tutorials"
sys.path.insert(0, str(TUTORIALS))

pytest.importorskip("markdown_it", reason="markdown-it is not installed: pip install '.[docs]'")

from kit import quiz  # noqa: E402
from kit.lesson import Lesson  # noqa: E402

pytestmark = pytest.mark.torch

ENGLISH, CHINESE = quiz.questions("en"), quiz.questions("zh")
NUMBERS = [int(path.name[:2]) for path in TUTORIALS.glob("[0-9]*.ipynb")]


def test_every_lesson_has_five_questions() -> None:
    counts = Counter(one.key.partition(".")[0] for one in ENGLISH)
    assert {*counts.values()} == {5} and {*map(str, NUMBERS)} <= {*counts}
    assert {one.key for one in ENGLISH} == {*ANSWERS}


@pytest.mark.parametrize("question", ENGLISH, ids=[one.key for one in ENGLISH])
@pytest.mark.cases(full=20)
def test_torch_gives_the_answer(question: quiz.Question, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger("torch._dynamo"), "level", logging.ERROR)
    assert ANSWERS[question.key]() == pytest.approx(question.right), question.text


def test_both_languages_ask_the_same() -> None:
    assert len(ENGLISH) == len(CHINESE)
    for one, other in zip(ENGLISH, CHINESE):
        assert (one.key, one.right, len(one.choices)) == (other.key, other.right, len(other.choices))
        assert sorted(re.findall("`[^`]+`", one.text)) == sorted(re.findall("`[^`]+`", other.text)), one.key
        assert is_chinese(other.text) and is_chinese(other.why) and not is_chinese(one.text + one.why)
        assert one.why.endswith(".") and other.why.endswith("。")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_platform_can_read_it(language: str) -> None:
    """GIFT's rules: special characters in a text are escaped, and one choice is correct."""
    parts = re.split(r"\n\s*\n", quiz.gift(language))
    for one in (part for part in parts if part.startswith("::")):
        match = re.fullmatch(r"::[\d.]+::\[markdown\]((?:[^~=#{}\\]|\\[=])+)\{(.+)\}", one.strip(), re.S)
        assert match, one
        answer, _, why = match[2].partition("\n####")
        assert why and re.fullmatch(r"(?:[^~=#{}\\]|\\=)+", why), one
        if not re.fullmatch(r"#\d+", answer):
            lines = answer.strip().split("\n")
            assert all(re.fullmatch(r"[~=](?:[^~=#{}\\]|\\=)+", line) for line in lines), one
            assert sum(line.startswith("=") for line in lines) == 1 and len(lines) == len({*lines}) >= 2


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_sheet_has_the_answers_for_lecturers_only(language: str) -> None:
    folder = TUTORIALS / "zh" if language == "zh" else TUTORIALS
    for number in NUMBERS:
        (path,) = folder.glob(f"{number:02}-*.ipynb")
        one = Lesson(path.stem, nbformat.read(path, as_version=4).cells, language)
        questions, answered = quiz.sheet(one, False), quiz.sheet(one, True)
        mine = [q for q in quiz.questions(language) if q.key.partition(".")[0] == str(number)]
        assert answered.count("class=right") == 5 and "class=right" not in questions
        assert answered.count('class="why"') == 5 and 'class="why"' not in questions
        assert quiz.part(one).count("::[markdown]") == len(mine) == 5
        for question in mine:
            assert questions.count(f"<strong>{question.key.partition('.')[2]}.</strong>") == 1
            assert f"::{question.key}::" in quiz.part(one)
