"""A Summary: the answers that a reader needs first, as data. All short texts are renderings of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compile_lens.record.messages import first_names
from compile_lens.record.missing import Missing, by_reason

from ..document import cut
from ..words.quantities import plural
from ..words.sentences import ENGLISH

REPORTED = ("code", "torch says", "because", "try", "hint", "error", "ended")
"""Labels of lines, and titles of parts, that hold text of the program or of torch."""


NOTES, REASONS = 2, 3
"""Notes, and reasons why something was not observed, before the rest is only counted."""


@dataclass(frozen=True)
class Row:
    """One entry of a part.

    Attributes:
        head: its figures.
        place: where it is (``"model.py:25"``).
        code: the text of that line, which is the program's.
        lines: more about it, the most important first: a label, ``""`` for none, and its text.
    """

    head: str
    place: str = ""
    code: str = ""
    lines: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Part:
    """One answer: ``fact`` in a sentence without a full stop, then its rows. ``left`` counts rows that are not in it,
    ``where`` names what has all of them. ``table`` is a table whose first row is its head."""

    title: str
    fact: str = ""
    rows: tuple[Row, ...] = ()
    left: int = 0
    where: str = ""
    table: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Summary:
    """The first answers about a subject.

    Attributes:
        title: what it is about.
        facts: where and how, in a few words each.
        verdict: the result, in sentences.
        parts: the answers, in order.
        calls: what comes next: in words, and the call.
        not_to_conclude: what does not follow from it.
        language: of its sentences.
    """

    title: str
    facts: tuple[str, ...]
    verdict: tuple[str, ...]
    parts: tuple[Part, ...]
    calls: tuple[tuple[str, str], ...]
    not_to_conclude: tuple[str, ...] = ()
    language: str = ENGLISH


def notes(texts: tuple[str, ...], where: str) -> Part | None:
    """The first notes of a record: what was left out, or not compared, qualifies the verdict."""
    return sentences(
        "Notes", plural(len(texts), "note"), [" ".join(text.split()) for text in texts], NOTES, where
    )


def not_observed(missing: tuple[Missing, ...], what: tuple[str, str], names: int, where: str) -> Part | None:
    """The reasons why a record lacks something, each with its first ``names`` stages; ``what`` are nouns for one of
    them and for several."""
    texts = [f"{first_names(stages, names)}: {reason}" for reason, stages in by_reason(missing).items()]
    return sentences("Not observed", plural(len(missing), *what), texts, REASONS, where)


def sentences(title: str, fact: str, texts: Sequence[str], most: int, where: str) -> Part | None:
    """A part of sentences; ``None`` without any."""
    rows = [Row("", lines=(("", text),)) for text in texts]
    return Part(title, fact, *cut(rows, most), where) if rows else None


def sentence(text: str) -> str:
    """A text with a full stop."""
    text = text.strip()
    ends = text.endswith((".", "?", "!", ":", '."'))
    return f"{text}{'' if ends else '.'}" if text else ""
