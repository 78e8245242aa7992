"""The texts of the live page in another language, for lookup by its scripts (``web/translation/translator.js``)."""

from __future__ import annotations

import functools
import importlib.resources
import json

from compile_lens.measures.fusion_answer import DECISIONS_NOT_SEEN, LIBRARY_CALL_BETWEEN, NOT_PROPOSED
from compile_lens.record.decision import CUSTOM_REMEDY, REASONS

from ..render.html.in_language import drawing, translated
from ..story.chinese import REASONS as ABSENT
from ..story.chinese import WORDS
from ..words import sentences
from ..words.sentences import CHINESE, ENGLISH
from ..words.translator import Translator

_CLAUSES = {
    **{reason.sentence: f"apart.{key}" for key, reason in REASONS.items()},
    **{reason.remedy: f"try.{key}" for key, reason in REASONS.items() if reason.remedy},
    CUSTOM_REMEDY: "try.custom",
    LIBRARY_CALL_BETWEEN: "apart.wall",
    NOT_PROPOSED: "apart.never proposed",
    DECISIONS_NOT_SEEN: "apart.not seen",
}
"""Sentences that the story also has, with their keys there."""

_STORY = {CHINESE: {**ABSENT, **{english: WORDS[key] for english, key in _CLAUSES.items()}}}


@functools.cache
def translation(language: str) -> tuple[tuple[str, str], ...]:
    """Return the English texts of the page and their translations."""
    file = importlib.resources.files(__package__).joinpath("translations").joinpath(f"{language}.json")
    sections: dict[str, dict[str, str]] = json.loads(file.read_text(encoding="utf-8"))
    table = dict(sentences.in_language(_STORY, language, "story of the live page"))
    for section in sections.values():
        table.update(section)
    return tuple((_whole(english), _whole(other)) for english, other in table.items())


def in_language(markup: str, language: str) -> str:
    """Translate static HTML as the scripts of the page would."""
    return markup if language == ENGLISH else translated(markup, _translator(language).translate)


def sentence(text: str, language: str) -> str:
    """Translate a text, including its full stop."""
    if language == ENGLISH:
        return text
    words = _translator(language).translate(text)
    return f"{words[:-1]}。" if words != text and words.endswith(".") and not words.endswith("..") else words


def picture(svg: str, language: str) -> str:
    """Translate the sentences of a drawing."""
    return svg if language == ENGLISH else drawing(svg, _translator(language).translate)


@functools.cache
def _translator(language: str) -> Translator:
    return Translator(translation(language))


def _whole(sentence: str) -> str:
    """Return a sentence without its full stop, the form in which the scripts look it up."""
    return sentence.rstrip(".。") if not sentence.endswith("..") else sentence
