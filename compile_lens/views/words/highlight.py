"""Highlights source text with Pygments: the colour of each run of characters.

Pygments has no lexers for Triton and Metal; its lexers ``python`` and ``cpp`` read them without error tokens.
"""

from __future__ import annotations

import functools
from typing import Any

from .palette import INK

LEXERS = {"python": "python", "triton": "python", "cpp": "cpp", "metal": "cpp"}

# Each ink has a contrast of at least 4.5:1 on the listing's ground (#f6f8fa). The nearest ancestor counts.
_INKS = {
    "Token.Comment": "color:#556",
    "Token.Comment.Preproc": "color:#8250df",
    "Token.Keyword": "color:#b3202c",
    "Token.Keyword.Type": "color:#0550ae",
    "Token.Keyword.Constant": "color:#0550ae",
    "Token.Operator.Word": "color:#b3202c",
    "Token.Name.Builtin": "color:#0550ae",
    "Token.Name.Function": "color:#6f42c1",
    "Token.Name.Class": "color:#8a3f00",
    "Token.Name.Decorator": "color:#6f42c1",
    "Token.Name.Namespace": "color:#1f2328",
    "Token.Name.Exception": "color:#8a3f00",
    "Token.Literal.String": "color:#116329",
    "Token.Literal.Number": "color:#0550ae",
}


INKS = tuple(c for c in dict.fromkeys(s.removeprefix("color:") for s in _INKS.values()) if c != INK)
"""Colours by number, counted from 1. Number 0 is the colour of plain text."""


def runs(source: str, language: str, limit: int) -> list[tuple[int, int]]:
    """Return the colours of a text as runs ``(characters, colour number)`` from its start.

    Lines past ``limit`` characters and all lines in a language without a lexer have no colours. Control characters in
    the text must already be written out. Space has the colour of the text before it.
    """
    lexer = LEXERS.get(language)
    head = _head(source, limit)
    if lexer is None or not head:
        return []
    return list(_remembered(head, lexer) if len(head) <= SHORT else _runs(head, lexer))


SHORT = 20_000
"""Maximum characters of a text whose colours are cached. The stages of a capture share texts, and so do captures of an
edited program."""


@functools.lru_cache(maxsize=128)
def _remembered(text: str, lexer: str) -> tuple[tuple[int, int], ...]:
    return tuple(_runs(text, lexer))


def _runs(text: str, lexer: str) -> list[tuple[int, int]]:
    inks: list[tuple[int, int]] = []
    length, ink = 0, 0
    for kind, value in _lexer(lexer).get_tokens(text):
        new = ink if value.isspace() else _ink(kind)
        if new != ink:
            if length:
                inks.append((length, ink))
            length, ink = 0, new
        length += len(value)
    inks.append((length, ink))
    return inks


def _head(source: str, limit: int) -> str:
    """Return the complete lines in the first ``limit`` characters."""
    if len(source) <= limit:
        return source
    return source[: source.rfind("\n", 0, limit) + 1] if limit > 0 else ""


@functools.cache
def _lexer(name: str) -> Any:
    from . import lexers

    # Keep the text as it is: no newline stripped or added, no tab expanded.
    return {"python": lexers.Python, "cpp": lexers.Cpp}[name](stripnl=False, ensurenl=False)


@functools.cache
def _ink(kind: Any) -> int:
    while kind is not None:
        style = _INKS.get(str(kind))
        if style is not None:
            colour = style.removeprefix("color:")
            return INKS.index(colour) + 1 if colour in INKS else 0
        kind = kind.parent
    return 0
