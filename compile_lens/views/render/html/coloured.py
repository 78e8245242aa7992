"""Source text as coloured HTML, line by line. No classes, no style sheet, no ids."""

from __future__ import annotations

import html

from ...words.characters import clean
from ...words.highlight import INKS, runs

_BOLD = INKS.index("#b3202c") + 1
"""The ink of keywords, which HTML sets in bold: they are many, and a tag is a fifth of a span with a style."""


_COMMON = INKS.index("#0550ae") + 1
"""The ink of numbers and types, which HTML leaves plain: half of all the spans of generated code."""


def coloured(source: str, language: str, limit: int) -> tuple[list[str], int]:
    """HTML of each line, and how many lines are coloured.

    Lines past ``limit`` characters, and all lines in a language without a lexer, are escaped plain text.
    """
    source = clean(source)
    lines: list[str] = []
    line: list[str] = []
    start = 0
    for length, ink in runs(source, language, limit):
        for index, piece in enumerate(source[start : start + length].split("\n")):
            if index:
                lines.append("".join(line))
                line = []
            line.append(_span(piece, ink))
        start += length
    rest = _escaped(source[start:]).split("\n")
    if not start:
        return rest, 0
    if start == len(source):
        return [*lines, "".join(line)], len(lines) + 1
    return [*lines, *rest], len(lines)  # the coloured head ends in a newline, after which the rest goes on


def _escaped(source: str) -> str:
    """Source as the text of an element: in one, quotes are plain."""
    return html.escape(source, quote=False)


def _span(piece: str, ink: int) -> str:
    if not ink or ink == _COMMON or not piece or piece.isspace():
        return _escaped(piece)
    # Space at the start of a line needs no ink: the line's indentation stays outside.
    inner = piece.lstrip()
    start, end = ("<b>", "</b>") if ink == _BOLD else (f'<span style="color:{INKS[ink - 1]}">', "</span>")
    return f"{piece[: len(piece) - len(inner)]}{start}{_escaped(inner)}{end}"
