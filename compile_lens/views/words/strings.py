"""Languages of the output, and strings by language: one that is missing fails with a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

ENGLISH, CHINESE = "en", "zh"
LANGUAGES = (ENGLISH, CHINESE)

_T = TypeVar("_T")


def in_language(strings: Mapping[str, _T], language: str, what: str) -> _T:
    """The string of a language. Raises ``LookupError`` with a sentence if ``what`` has none."""
    if language not in strings:
        raise LookupError(
            f"the {what} is not written in {language!r}; add it to the table that has it in "
            f"{', '.join(map(repr, strings)) or 'no language'}"
        )
    return strings[language]
