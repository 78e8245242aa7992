"""Source text as coloured HTML, line by line, by Pygments. No classes, no style sheet, no ids.

Pygments has no lexer for Triton or Metal; ``python`` and ``cpp`` read them without an error token.
"""

from __future__ import annotations

import functools
import html
from typing import Any

from .characters import clean

LEXERS = {"python": "python", "triton": "python", "cpp": "cpp", "metal": "cpp"}

# Each ink has a contrast of at least 4.5:1 on the listing's ground (#f6f8fa). The nearest ancestor counts.
_INKS = {
    "Token.Comment": "color:#57606a",
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


def coloured(source: str, language: str, limit: int) -> tuple[list[str], int]:
    """HTML of each line, and how many lines are coloured.

    Lines past ``limit`` characters, and all lines in a language without a lexer, are escaped plain text.
    """
    source = clean(source)
    lexer = LEXERS.get(language)
    if lexer is None or limit <= 0:
        return html.escape(source).split("\n"), 0
    head, tail = source, ""
    if len(source) > limit:
        cut = source.rfind("\n", 0, limit) + 1
        head, tail = source[:cut], source[cut:]
    if not head:
        return html.escape(source).split("\n"), 0
    lines = _lines(head, lexer)
    done = len(lines)
    if tail or head != source:
        done -= 1  # the head ends in a newline, after which the tail goes on
        lines = lines[:-1] + html.escape(tail).split("\n")
    return lines, done


def _lines(source: str, lexer: str) -> list[str]:
    lines: list[str] = []
    line: list[str] = []
    ink, run = "", ""

    def flush() -> None:
        if run:
            line.append(f'<span style="{ink}">{html.escape(run)}</span>' if ink else html.escape(run))

    for kind, value in _lexer(lexer).get_tokens(source):
        style = _ink(kind)
        pieces = value.split("\n")
        for index, piece in enumerate(pieces):
            if index:
                flush()
                run = ""
                lines.append("".join(line))
                line = []
            # Space takes the ink of what stands before it: fewer spans, same picture.
            if style == ink or (piece.isspace() and run):
                run += piece
            else:
                flush()
                ink, run = style, piece
    flush()
    lines.append("".join(line))
    return lines


@functools.cache
def _lexer(name: str) -> Any:
    from pygments.lexers import get_lexer_by_name

    # Keep the text as it is: no newline stripped or added, no tab expanded.
    return get_lexer_by_name(name, stripnl=False, ensurenl=False)


@functools.cache
def _ink(kind: Any) -> str:
    while kind is not None:
        style = _INKS.get(str(kind))
        if style is not None:
            return style
        kind = kind.parent
    return ""
