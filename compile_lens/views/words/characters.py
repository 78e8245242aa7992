"""Text for a terminal: control characters written out, widths in cells, wrapping, and encodability.

Names, paths and messages come from a user's program. A newline, an escape sequence or a right-to-left mark in them must
not move, recolour or reorder the text around them, so such characters are written out.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

_HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff"
    "\ud800-\udfff]"
)
_BREAKS = re.compile(r"[\t\r\n]")

_ASCII = {
    "→": "->",
    "←": "<-",
    "↳": "->",
    "·": "-",
    "…": "...",
    "—": "-",
    "–": "-",
    "×": "x",
    "²": "^2",
    "─": "-",
    "━": "=",
    "│": "|",
    "✓": "+",
    "◐": "~",
    "✗": "x",
}
"""ASCII replacements for the characters of our own pages."""


def clean(text: str) -> str:
    """Return the text with invisible and direction-changing characters written out; tabs and newlines stay."""
    return _HIDDEN.sub(_escape, text.replace("\r\n", "\n").replace("\r", "\\r"))


def flat(text: str) -> str:
    """Return ``clean`` text on one line: tabs and newlines are also written out."""
    return _BREAKS.sub(_escape, _HIDDEN.sub(_escape, text))


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    short = {9: "\\t", 10: "\\n", 13: "\\r"}.get(code)
    return short or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


def encodes(text: str, encoding: str) -> bool:
    """Return True if the text can be encoded; False for an encoding unknown to Python."""
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def printable(text: str, encoding: str | None) -> str:
    """Return the text with each character that ``encoding`` lacks replaced, so that printing it cannot raise.

    Our own arrows and lines become ASCII ones, other characters a backslash escape. ``None`` and unknown
    encodings count as ASCII.
    """
    name = encoding or "ascii"
    if encodes(text, name):
        return text
    if not encodes("", name):
        name = "ascii"
    out = []
    for char in text:
        if encodes(char, name):
            out.append(char)
        else:
            out.append(_ASCII.get(char) or char.encode("ascii", "backslashreplace").decode("ascii"))
    return "".join(out)


def cells(text: str) -> int:
    """Return the width of text in terminal cells: two for wide characters, none for combining marks."""
    if text.isascii():
        return len(text)
    return sum(_cells(char) for char in text)


def _cells(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def fit(text: str, width: int, mark: str = "…") -> str:
    """Return the text cut to ``width`` cells; a cut text ends in ``mark``."""
    if cells(text) <= width:
        return text
    room = width - cells(mark)
    if room < 2:  # not even one wide character
        return mark if room >= 0 else ""
    return _split(text, room)[0] + mark


def pad(text: str, width: int, right: bool = False) -> str:
    """Return the text padded with spaces to ``width`` cells, on the left if ``right``."""
    space = " " * max(width - cells(text), 0)
    return space + text if right else text + space


def capitalized(text: str) -> str:
    """Return a text with its first letter capitalized; unlike ``str.capitalize`` it keeps the rest."""
    return text[:1].upper() + text[1:]


def aligned(rows: Sequence[Sequence[str]], right: Sequence[bool], indent: str = "") -> list[str]:
    """Return rows as lines with aligned columns; those in ``right`` are right-aligned."""
    widths = [max(map(cells, column)) for column in zip(*rows)]
    lines = (map(pad, row, widths, right) for row in rows)
    return [f"{indent}{'  '.join(line)}".rstrip() for line in lines]


def wrap(text: str, width: int, indent: str = "", more: str | None = None) -> list[str]:
    """Return lines of at most ``width`` cells, broken at spaces if possible; later ones start with ``more``."""
    more = indent if more is None else more
    lines: list[str] = []
    start = indent
    for paragraph in text.split("\n"):
        rest = paragraph.expandtabs(4).rstrip()
        while True:
            room = max(width - cells(start), 8)
            head, tail = _split(rest, room)
            if tail and not tail.startswith(" "):
                cut = _cut(head, tail)
                if head[:cut].strip():
                    head, tail = head[:cut], head[cut:] + tail
            lines.append((start + head).rstrip())
            start = more
            rest = tail.lstrip()
            if not rest:
                break
    return lines


_NOT_FIRST = frozenset("，。、；：！？）”’》」』】…")
_NOT_LAST = frozenset("（“‘《「『【")
"""Punctuation that must not end a line of wide characters."""


def _cut(head: str, tail: str) -> int:
    """Return the last index where a line may break: at a space, or next to a wide character; 0 if there is none."""
    text = head + tail[:1]
    for at in range(len(head), 0, -1):
        before, after = text[at - 1], text[at]
        if after == " ":
            return at
        wide = 2 in (_cells(before), _cells(after)) and " " not in (before, after)
        if wide and after not in _NOT_FIRST and before not in _NOT_LAST:
            return at
    return 0


def _split(text: str, width: int) -> tuple[str, str]:
    """Return the longest non-empty head of at most ``width`` cells, and the rest."""
    if text.isascii():
        return text[: max(width, 1)], text[max(width, 1) :]
    used = 0
    for index, char in enumerate(text):
        used += _cells(char)
        if used > width and index:
            return text[:index], text[index:]
    return text, ""


def short(value: str, limit: int = 12_000) -> str:
    """Return the head of a long string, with the number of omitted characters."""
    return value if len(value) <= limit else f"{value[:limit]}… ({len(value) - limit:,} characters more)"


def line(value: str) -> str:
    """Return a string on one line."""
    if len(value) < 1000 and value.isascii() and value.isprintable():
        return value  # fast path for nearly all strings
    return flat(short(value))


def block(value: str, limit: int = 12_000) -> str:
    """Return a cleaned string that keeps its lines."""
    return clean(short(value, limit))


class Strings:
    """Numbered strings: each is stored once in a page part."""

    def __init__(self, first: Iterable[str] = ()) -> None:
        self._numbers: dict[str, int] = {}
        self._known: dict[str, int] = {}
        for value in first:
            self.number(value)

    def number(self, value: str) -> int:
        """Return the number of a string."""
        known = self._known.get(value)
        if known is None:
            known = self._known[value] = self._numbers.setdefault(line(value), len(self._numbers))
        return known

    def all(self) -> list[str]:
        """Return the strings, by number."""
        return list(self._numbers)
