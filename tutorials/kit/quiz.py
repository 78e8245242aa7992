"""The quiz: five questions for each lesson, read from GIFT, a format that learning platforms import."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from pathlib import Path

from .handout import section
from .lesson import Lesson
from .pages import page, prose

FILES = {"en": "quiz.gift", "zh": "quiz.zh.gift"}
WORDS = {
    "en": {"quiz": "Quiz", "answers": "Answers, for the lecturer", "name": "Name", "number": "Answer:"},
    "zh": {"quiz": "小测验", "answers": "答案，供教师使用", "name": "姓名", "number": "答："},
}
QUESTION = re.compile(r"^::([\d.]+)::\[markdown\](.+?)\s*(?<!\\)\{(.+?)(?<!\\)\}", re.M | re.S)
CHOICE = re.compile(r"^([~=])(.+)$", re.M)


@dataclass(frozen=True)
class Question:
    """One question: a number is its answer, or one of its choices, whose place from 0 is ``right``."""

    key: str
    text: str
    choices: tuple[str, ...]
    right: float
    why: str


def gift(language: str) -> str:
    """Return the questions of all lessons as a platform imports them."""
    return Path(__file__).with_name(FILES[language]).read_text(encoding="utf-8")


def questions(language: str) -> list[Question]:
    """Return the questions of all lessons."""
    return [_question(*found) for found in QUESTION.findall(gift(language))]


def _question(key: str, text: str, body: str) -> Question:
    answer, _, why = body.partition("####")
    marked = CHOICE.findall(answer)
    right = next((n for n, (mark, _) in enumerate(marked) if mark == "="), 0) if marked else float(answer[1:])
    return Question(key, _plain(text), tuple(_plain(one) for _, one in marked), right, _plain(why))


def _plain(text: str) -> str:
    return re.sub(r"\\([~=#{}:])", r"\1", text.strip())


def part(lesson: Lesson) -> str:
    """Return the questions of one lesson as a platform imports them."""
    (found,) = re.findall(
        rf"^\$CATEGORY: \S+/{lesson.number}\n.*?(?=^\$CATEGORY|\Z)", gift(lesson.language), re.M | re.S
    )
    return str(found).rstrip() + "\n"


def sheet(lesson: Lesson, answers: bool) -> str:
    """Return the quiz of a lesson as an HTML file, which prints a page of A4, with the answers or without them."""
    words = WORDS[lesson.language]
    mine = [one for one in questions(lesson.language) if one.key.partition(".")[0] == str(lesson.number)]
    body = f"<h2>{words['quiz']}</h2>" + "".join(_shown(one, answers, words["number"]) for one in mine)
    right = f"<b>{words['answers']}</b>" if answers else f"{words['name']} " + "_" * 24
    return page("sheets", f"{lesson.title}: {words['quiz']}", lesson.language, [section(lesson, right, body)])


def _shown(question: Question, answers: bool, label: str) -> str:
    number = question.key.partition(".")[2]
    text = f'<div class="question">{prose(f"**{number}.** {question.text}")}'
    if question.choices:
        right = question.choices[int(question.right)]
        # By the alphabet the right one is not where the writer of the question likes to have it.
        options = "".join(
            f"<li{' class=right' if answers and one == right else ''}>{_inline(one)}</li>"
            for one in sorted(question.choices)
        )
        text += f'<ol class="options">{options}</ol>'
    else:
        text += f"<p>{label} {f'<span class=right>{question.right:,g}</span>' if answers else '_' * 16}</p>"
    return text + (f'<p class="why">{html.escape(question.why)}</p>' if answers else "") + "</div>"


def _inline(markdown: str) -> str:
    return prose(markdown).strip().removeprefix("<p>").removesuffix("</p>")
