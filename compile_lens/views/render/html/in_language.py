"""Translates static HTML: its text is translated, code and names stay unchanged."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from urllib.parse import unquote

from .markup import in_address

_TAG = re.compile(r"""(<(?:[^>"']|"[^"]*"|'[^']*')*>)""")
_NAME = re.compile(r"<(/?)([\w-]+)")
_ATTRIBUTE = re.compile(r'(?<= )(title|aria-label|alt)="([^"]*)"')
_AS_IT_IS = re.compile(
    r"<(pre|code|bdi|style|script|textarea)\b|<[^>]*class=\"cl-listing|<[^>]*font-family:monospace"
)
_DRAWING = re.compile(r"(?<= src='data:image/svg\+xml,)([^']*)")
_NOTE = re.compile(r"<[^>]*class=\"cl-origins")
_EMPTY = frozenset("img br hr input meta link col wbr".split())


def translated(markup: str, translate: Callable[[str], str]) -> str:
    """Translate the texts and titles of markup, except in elements with code or names."""
    made, stack = [], [False]
    for at, piece in enumerate(_TAG.split(markup)):
        if at % 2 == 0:
            made.append(piece if stack[-1] or not piece.strip() else _text(piece, translate))
            continue
        name = _NAME.match(piece)
        if not stack[-1]:
            piece = _ATTRIBUTE.sub(lambda found: f'{found[1]}="{_text(found[2], translate)}"', piece)
            piece = _DRAWING.sub(lambda found: in_address(drawing(unquote(found[1]), translate)), piece)
        made.append(piece)
        if name is None or name[2] in _EMPTY or piece.endswith("/>"):
            continue
        if name[1]:
            if len(stack) > 1:
                stack.pop()
        else:
            own = _NOTE.match(piece) is None and _AS_IT_IS.match(piece) is not None
            stack.append(own or (stack[-1] and _NOTE.match(piece) is None))
    return "".join(made)


def drawing(svg: str, translate: Callable[[str], str]) -> str:
    """Translate the sentences of an SVG document; single words in it are names."""
    return translated(svg, lambda words: translate(words) if re.search(r"\S\s+\S", words) else words)


def _text(escaped: str, translate: Callable[[str], str]) -> str:
    text = html.unescape(escaped)
    # After a name in an element of its own.
    other = f"：{translate(text[2:])}" if text.startswith(": ") else translate(text)
    return escaped if other == text else html.escape(other)
