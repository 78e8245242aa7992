"""Languages of the output, and strings by key and language: a missing one fails with a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

ENGLISH, CHINESE = "en", "zh"

_T = TypeVar("_T")


def in_language(strings: Mapping[str, _T], language: str, what: str) -> _T:
    """The string of a language. Raises ``LookupError`` with a sentence if ``what`` has none in it."""
    if language not in strings:
        others = ", ".join(map(repr, strings)) or "no language"
        raise LookupError(f"the {what} is not written in {language!r}: add it beside that in {others}")
    return strings[language]


def entry(table: Mapping[str, _T], key: str, language: str, what: str) -> _T:
    """The entry of the table of one language. Raises ``LookupError`` with a sentence if it has none."""
    if key not in table:
        raise LookupError(
            f"the {what} {key!r} is not written in {language!r}: add it to the table of that language"
        )
    return table[key]
