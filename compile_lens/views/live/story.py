"""The part "story": a capture told in sentences, with the numbers of what each is about."""

from __future__ import annotations

from compile_lens.measures.address import PYTHON
from compile_lens.record.capture import Record

from ..story import Sentence, story
from ..words.outline import phase_of
from .items import Items
from .words import line

ABOUT = 60
"""Items that one sentence links."""

SENTENCES = 2000
"""Sentences that the page holds; the rest is only counted."""


def told(capture: Record, items: Items) -> dict[str, object]:
    """The ``StoryData`` of the page."""
    whole = story(capture)
    kept, left = whole.sentences[:SENTENCES], len(whole.sentences) - SENTENCES
    numbers = {compilation.id: number for number, compilation in enumerate(items.compilations)}
    chapters: list[dict[str, object]] = []
    for sentence in kept:
        title = line(sentence.chapter)
        if not chapters or chapters[-1]["title"] != title:
            chapters.append({"title": title, "sentences": []})
        made = chapters[-1]["sentences"]
        assert isinstance(made, list)
        made.append(_sentence(sentence, items, numbers))
    return {
        "title": line(whole.title),
        "chapters": chapters,
        "left": f"and {left} sentences more: capture.story()" if left > 0 else "",
    }


def _sentence(sentence: Sentence, items: Items, numbers: dict[str, int]) -> dict[str, object]:
    known = (items.item(address) for address in sentence.about[:ABOUT] if address[1] != PYTHON)
    return {
        "key": sentence.key,
        "text": line(sentence.text),
        "compilation": numbers.get(sentence.compilation, -1),
        "phase": phase_of(sentence.stage),
        "items": [item for item in known if item is not None],
    }
