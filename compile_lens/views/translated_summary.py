"""Translates a Summary: its sentences are translated; code, names, calls and text of torch or the program stay
unchanged."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from .live.translation import sentence
from .summaries.summary import REPORTED, Part, Row, Summary
from .words.sentences import ENGLISH

Translate = Callable[[str], str]

_PLACE = re.compile(r":\d+$")
"""The end of a location: the line after the file name."""


def in_language(summary: Summary, language: str) -> Summary:
    """Translate a Summary; sentences without a translation stay unchanged."""
    if language == ENGLISH:
        return summary

    def translate(text: str) -> str:
        return sentence(text, language)

    return replace(
        summary,
        facts=tuple(map(translate, summary.facts)),
        verdict=tuple(map(translate, summary.verdict)),
        parts=tuple(_part(part, translate) for part in summary.parts),
        calls=tuple((translate(words), call) for words, call in summary.calls),
        not_to_conclude=tuple(map(translate, summary.not_to_conclude)),
        language=language,
    )


def _part(part: Part, translate: Translate) -> Part:
    fact = part.fact if part.title.lower() in REPORTED else translate(part.fact)
    rows = tuple(_row(row, translate) for row in part.rows)
    table = tuple(tuple(map(translate, line)) for line in part.table)
    return replace(part, title=translate(part.title), fact=fact, rows=rows, table=table)


def _row(row: Row, translate: Translate) -> Row:
    lines = tuple(
        (label if label == "code" else translate(label), words if label in REPORTED else translate(words))
        for label, words in row.lines
    )
    place = row.place if _PLACE.search(row.place) else translate(row.place)
    return replace(row, head=translate(row.head), place=place, lines=lines)
