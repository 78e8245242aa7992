"""A hand-out of one printed page: the question, a picture, the tasks, three sentences, and room for notes."""

from __future__ import annotations

import html

from .lesson import Block, Lesson
from .pages import LICENCE, page, prose, python

WORDS = {
    "en": {"lesson": "Lesson {number}", "name": "Name", "notes": "Notes"},
    "zh": {"lesson": "第 {number} 课", "name": "姓名", "notes": "笔记"},
}


def handout(lesson: Lesson) -> str:
    """Return the hand-out as an HTML file, which prints one page of A4."""
    words = WORDS[lesson.language]
    question, blocks = lesson.question
    exercises, tasks = lesson.exercises
    sentences, text = lesson.take_home
    shown = [block for step in lesson.steps() for block in step.blocks]
    lines = sum(one.content.count("\n") for one in (*blocks, *tasks) if one.kind == "code")
    # Beside long programs a drawing would make all of it small.
    drawings = [one for one in shown if one.kind == "svg"][: lines <= 20]
    code = [one for one in shown if one.kind == "code"][:1]
    picture = drawings or ([] if any(one.kind == "code" for one in blocks) else code)
    body = (
        f"<h2>{html.escape(question)}</h2>",
        *map(_shown, (*blocks, *picture)),
        f"<h2>{html.escape(exercises)}</h2>",
        *map(_shown, tasks),
        f"<h2>{html.escape(sentences)}</h2>",
        prose(text),
        f"<h2>{words['notes']}</h2>",
        '<div class="notes"></div>',
    )
    sheet = section(lesson, f"{words['name']} " + "_" * 24, "".join(body))
    return page("sheets", lesson.title, lesson.language, [sheet])


def section(lesson: Lesson, right: str, body: str) -> str:
    """Return one sheet: the lesson's title with ``right`` beside it, and the body."""
    place = WORDS[lesson.language]["lesson"].format(number=lesson.number)
    return (
        f"<section><header><h1>{html.escape(lesson.title)}</h1><span>{right}</span></header>{body}"
        f"<footer><span>{place}</span><span>{LICENCE[lesson.language]}</span></footer></section>\n"
    )


def _shown(block: Block) -> str:
    if block.kind == "svg":
        return f'<div class="drawing">{block.content}</div>'
    return prose(block.content) if block.kind == "text" else f"<pre>{python(block.content)}</pre>"
