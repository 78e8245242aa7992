"""The certificate names the contents of the progress file, and states what that proves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from compile_lens import UsageError, course
from compile_lens.course import state
from compile_lens.course.lessons import EXERCISES
from compile_lens.course.wording import message

TUTORIALS = Path(__file__).resolve().parents[2] / "tutorials"
COUNT = len([*TUTORIALS.glob("[0-9]*.ipynb")])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    yield
    course.language("en")


def test_a_lesson_is_done_when_every_exercise_was_right() -> None:
    for key in ("1.1", "1.2", "1.3"):
        state.attempted(key, True)
    state.attempted("1.1", False)  # a later wrong attempt removes nothing
    state.hinted("1.1")
    state.attempted("2.1", True)
    state.attempted("3.1", False)
    text = course.certificate("c.txt", "Ada").read_text(encoding="utf-8")
    assert "A course on torch.compile: Ada" in text and f"1 of {COUNT} lessons are done" in text
    rows = {
        words[0]: words[1:]
        for line in text.split("\n")
        if len(words := re.split(r"\s{2,}", line.strip())) == 5
    }
    assert rows["One line, four stages"] == ["3", "3", "4", "1"]
    assert rows["Capture: breaks and guards"] == ["1", "3", "1", "0"]
    assert (
        text.index("lessons done")
        < text.index("One line")
        < text.index("lessons begun")
        < text.index("Capture")
    )
    assert "Devices" not in text


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_form_says_what_it_does_not_prove(language: str) -> None:
    course.language(language)
    for key in EXERCISES:
        state.attempted(key, True)
    for ending in ("html", "md", "txt"):
        page = course.certificate(f"c.{ending}", "<b>Ada</b>").read_text(encoding="utf-8")
        plain = re.sub(r"\s+", "", re.sub(r"&#x27;|&#39;", "'", page).replace("\\", ""))
        for words in ("notes", "what a certificate says", "what a certificate does not say"):
            assert re.sub(r"\s+", "", message(words)) in plain, (ending, words)
        assert "<b>Ada" not in page or ending == "txt"


def test_without_progress_nothing_is_done() -> None:
    text = course.certificate("c.md").read_text(encoding="utf-8")
    assert f"0 of {COUNT} lessons are done" in text and "lessons begun" not in text
    Path("course-progress.json").write_text("[]", encoding="utf-8")
    with pytest.raises(UsageError, match="not a progress file of the course"):
        course.certificate("c.md")
    with pytest.raises(UsageError, match=r"\.html"):
        course.certificate("c.pdf")


@pytest.mark.parametrize(("language", "place"), [("en", "README.md"), ("zh", "zh/README.md")])
def test_titles_are_those_of_the_lessons(language: str, place: str) -> None:
    course.language(language)
    text = (TUTORIALS / place).read_text(encoding="utf-8")
    titles = re.findall(r"^\| \[(\d\d) ([^\]]+)\]\(", text, re.M)
    assert len(titles) == len({key.partition(".")[0] for key in EXERCISES})
    assert [message(f"title {int(number)}") for number, _ in titles] == [title for _, title in titles]
