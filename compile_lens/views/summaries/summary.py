"""A Summary: the most important answers as data. All short texts are made from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compile_lens.record.messages import first_names
from compile_lens.record.missing import Missing, by_reason

from ..document import cut
from ..words.quantities import plural
from ..words.sentences import ENGLISH

REPORTED = ("code", "torch says", "because", "try", "hint", "error", "ended")
"""Labels of lines and titles of parts with text of the program or of torch."""


NOTES, REASONS = 2, 3
"""Maximum notes, and maximum reasons why something was not observed; the rest is only counted."""


@dataclass(frozen=True)
class Row:
    """One entry of a part.

    Attributes:
        head: its figures.
        place: its location (``"model.py:25"``).
        code: the program's text of that line.
        lines: further lines, the most important first: a label or ``""``, and its text.
    """

    head: str
    place: str = ""
    code: str = ""
    lines: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Part:
    """One answer: the sentence ``fact`` without a full stop, then its rows. ``left`` counts omitted rows; ``where``
    names the attribute with all rows. ``table`` is a table whose first row has the titles."""

    title: str
    fact: str = ""
    rows: tuple[Row, ...] = ()
    left: int = 0
    where: str = ""
    table: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Summary:
    """The most important answers about a subject.

    Attributes:
        title: the subject.
        facts: facts about the run, in a few words each.
        verdict: the result, in sentences.
        parts: the answers, in order.
        calls: possible next steps: a description and the call.
        not_to_conclude: conclusions that do not follow from it.
        language: the language of its sentences.
    """

    title: str
    facts: tuple[str, ...]
    verdict: tuple[str, ...]
    parts: tuple[Part, ...]
    calls: tuple[tuple[str, str], ...]
    not_to_conclude: tuple[str, ...] = ()
    language: str = ENGLISH


def notes(texts: tuple[str, ...], where: str) -> Part | None:
    """Return the first notes of a record. They qualify the verdict: something was omitted or not compared."""
    return sentences(
        "Notes", plural(len(texts), "note"), [" ".join(text.split()) for text in texts], NOTES, where
    )


def not_observed(missing: tuple[Missing, ...], what: tuple[str, str], names: int, where: str) -> Part | None:
    """Return the reasons why a record lacks something, each with its first ``names`` stages. ``what`` has the singular
    and plural noun for them."""
    texts = [f"{first_names(stages, names)}: {reason}" for reason, stages in by_reason(missing).items()]
    return sentences("Not observed", plural(len(missing), *what), texts, REASONS, where)


def sentences(title: str, fact: str, texts: Sequence[str], most: int, where: str) -> Part | None:
    """Return a part with these sentences; ``None`` if there are none."""
    rows = [Row("", lines=(("", text),)) for text in texts]
    return Part(title, fact, *cut(rows, most), where) if rows else None


def sentence(text: str) -> str:
    """Return a text with a full stop."""
    text = text.strip()
    ends = text.endswith((".", "?", "!", ":", '."'))
    return f"{text}{'' if ends else '.'}" if text else ""
