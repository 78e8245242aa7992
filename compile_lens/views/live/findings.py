"""Page parts of findings: those of ``views.findings``, with item numbers in place of addresses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compile_lens.measures.address import PYTHON
from compile_lens.measures.chain import Address
from compile_lens.record.capture import Record

from ..document import (
    LIVE,
    Block,
    Change,
    Changes,
    Column,
    Columns,
    Finding,
    Picture,
    Prose,
    Section,
    Spot,
    Table,
)
from ..story import Sentence, story
from ..words import quantities
from ..words.characters import block, clean, line
from ..words.highlight import runs
from ..words.labels import phase_of
from ..words.quantities import printed
from ..words.sentences import ENGLISH
from . import translation
from .items import Items
from .texts import Text, made

COLOURED = 90_000
"""Maximum coloured characters of one finding's code."""

MAX_CHARACTERS = 20_000
"""Maximum characters of one text."""

ITEMS = 60
"""Maximum items that one row links."""


def finding_part(finding: Finding) -> str:
    """Return the name of the part with a finding's data."""
    return f"why-{finding.key}"


def finding_head(finding: Finding) -> dict[str, object]:
    """Return the ``FindingHead`` of a finding."""
    return {
        "key": finding.key,
        "title": line(finding.title),
        "intro": line(finding.intro),
        "fact": line(finding.fact),
        "badge": line(finding.badge),
        "missing": line(finding.missing),
        "part": "" if finding.missing else finding_part(finding),
    }


def findings_data(finding: Finding, items: Items, language: str = ENGLISH) -> dict[str, object]:
    """Return the ``FindingData`` of a finding. Its drawings are in ``language``, since no script translates them."""
    maker = _Maker(items, language)
    return {
        "where": line(finding.where),
        "sections": [maker.section(section) for section in finding.sections],
    }


class _Maker:
    def __init__(self, items: Items, language: str) -> None:
        self._items, self._language = items, language
        self._inks = COLOURED

    def section(self, section: Section) -> dict[str, Any]:
        if isinstance(section, Table):
            return self._table(section)
        if isinstance(section, Prose):
            paragraphs = [block(words) for words in section.paragraphs]
            return {"kind": "prose", "title": line(section.title), "paragraphs": paragraphs}
        if isinstance(section, Picture):
            picture = {
                "title": line(section.title),
                "svg": translation.picture(section.svg, self._language),
                "alt": line(section.alt),
            }
            spots = [self._spot(spot) for spot in section.spots]
            return {"kind": "picture", **picture, "spots": spots}
        if isinstance(section, Changes):
            steps = [self._step(step) for step in section.changes]
            left = quantities.more(section.left, "change", section.where)
            return {"kind": "steps", "title": line(section.title), "steps": steps, "left": left}
        if isinstance(section, Columns):
            columns = [self._column(column) for column in section.columns]
            return {"kind": "columns", "title": line(section.title), "columns": columns}
        assert isinstance(section, Block), section
        return {"kind": "block", **self._block(section)}

    def _table(self, table: Table) -> dict[str, Any]:
        rows = [
            {"cells": [line(printed(cell)) for cell in row.cells], "items": self._numbers(row.addresses)}
            for row in table.rows
        ]
        return {
            "kind": "table",
            "title": line(table.title),
            "words": [block(words) for words in table.words],
            "head": [line(word) for word in table.head],
            "kinds": list(table.kinds),
            "rows": rows,
            "full": table.room == LIVE,
            "left": quantities.more(table.left, "row", table.where),
        }

    def _spot(self, spot: Spot) -> dict[str, Any]:
        return {
            "start": round(100 * spot.start, 2),
            "end": round(100 * spot.end, 2),
            "words": line(spot.words),
            "items": self._numbers(spot.addresses),
            "chosen": spot.chosen,
        }

    def _numbers(self, addresses: Sequence[Address]) -> list[int]:
        items = (self._items.item(address) for address in dict.fromkeys(addresses))
        return [item for item in items if item is not None][:ITEMS]

    def _step(self, step: Change) -> dict[str, Any]:
        return {
            "title": line(step.title),
            "words": [line(words) for words in step.words],
            "before": self._text(step.before, "python"),
            "after": self._text(step.after, "python"),
            "items": self._numbers(step.addresses),
        }

    def _column(self, column: Column) -> dict[str, Any]:
        return {
            "title": line(column.title),
            "words": [line(words) for words in column.words],
            "figures": [[line(what), line(printed(value))] for what, value in column.figures],
            "blocks": [self._block(block_of) for block_of in column.blocks],
            "left": quantities.more(column.left, "kernel", "capture.ablations"),
        }

    def _block(self, shown: Block) -> dict[str, Any]:
        return {"title": line(shown.title), "code": self._text(shown.text, shown.language)}

    def _text(self, source: str, language: str) -> Text:
        text = clean(source)
        if len(text) > MAX_CHARACTERS:
            text = f"{text[:MAX_CHARACTERS]}\n… ({len(text) - MAX_CHARACTERS:,} characters left out)"
        inks = runs(text, language, self._inks)
        self._inks -= sum(length for length, _ in inks)
        return made(text, inks)


ABOUT = 60
"""Maximum items that one sentence links."""

SENTENCES = 2000
"""Maximum sentences on the page; the rest is only counted."""


def story_data(capture: Record, items: Items, language: str) -> dict[str, object]:
    """Return the ``StoryData`` of the page."""
    whole = story(capture, language)
    kept, left = whole.sentences[:SENTENCES], len(whole.sentences) - SENTENCES
    numbers = {compilation.id: number for number, compilation in enumerate(items.compilations)}
    chapters: list[dict[str, object]] = []
    for sentence in kept:
        title = line(sentence.chapter)
        if not chapters or chapters[-1]["title"] != title:
            chapters.append({"title": title, "sentences": []})
        last = chapters[-1]["sentences"]
        assert isinstance(last, list)
        last.append(_sentence(sentence, items, numbers))
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
