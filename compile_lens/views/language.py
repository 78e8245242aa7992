"""The language of pages: the one passed to a call, or else the current one."""

from __future__ import annotations

from compile_lens.errors import UsageError

from .words.sentences import CHINESE, ENGLISH

TAGS = {ENGLISH: "en", CHINESE: "zh-CN"}
"""The languages of pages, with their HTML names."""

_in_use = ENGLISH


def use(language: str) -> None:
    """Set the default language of pages. Raises ``UsageError`` for an unsupported one."""
    global _in_use
    _in_use = chosen(language)


def chosen(language: str | None = None) -> str:
    """Return the language passed to a call, or else the current one. Raises ``UsageError`` for an unsupported one."""
    if language is not None and language not in TAGS:
        raise UsageError(f"lang={language!r}: there are pages in {' and '.join(map(repr, TAGS))}")
    return language or _in_use
