"""The language of the pages: that which a call names, or else the one in use."""

from __future__ import annotations

from compile_lens.errors import UsageError

from .words.sentences import CHINESE, ENGLISH

TAGS = {ENGLISH: "en", CHINESE: "zh-CN"}
"""The languages that a page can be in, each with its name in HTML."""

_in_use = ENGLISH


def use(language: str) -> None:
    """From here on pages are in this language, unless a call names one. Raises ``UsageError`` for one without pages."""
    global _in_use
    _in_use = chosen(language)


def chosen(language: str | None = None) -> str:
    """The language that a call names, or else the one in use. Raises ``UsageError`` for one without pages."""
    if language is not None and language not in TAGS:
        raise UsageError(f"lang={language!r}: there are pages in {' and '.join(map(repr, TAGS))}")
    return language or _in_use
