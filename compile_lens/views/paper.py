"""What text is written on: lines of a width, in characters that standard output can encode."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence

from .words import outline
from .words.characters import cells, clean, encodes, fit, flat, pad, printable, wrap

DEFAULT_WIDTH = 100
"""Cells of a line where the terminal does not say, and in files."""

LEAST_WIDTH = 40

LONG = 12
"""Lines of one message shown before the rest is only counted."""


def paper_of(width: int | None, ascii: bool | None, marks: str) -> Paper:
    """An empty page.

    Args:
        width: cells of the longest line; the terminal's if ``None`` (at most 100 where it does not say), and
            never under 40.
        ascii: whether only ASCII may be used. ``None`` asks what standard output can encode, so that printing
            the page does not raise there.
        marks: the characters beyond ASCII that the page uses; where one of them cannot be encoded, none is used.
    """
    known = getattr(sys.stdout, "encoding", None) or "utf-8"
    encoding = "utf-8"
    if ascii or (ascii is None and not encodes(marks, known)):
        encoding = "ascii" if ascii else known
    if width is None:
        width = shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns
    return Paper(max(width, LEAST_WIDTH), encoding)


class Paper:
    """Lines that fit. Every text goes through here: cleaned, encodable, and cut or wrapped, but for code to copy."""

    def __init__(self, width: int, encoding: str) -> None:
        self.width = width
        self._encoding = encoding
        self._lines: list[str] = []

    def say(self, text: str) -> str:
        """The text as it can be shown on one line."""
        return printable(flat(text), self._encoding)

    def line(self, text: str = "") -> None:
        """One line, cut if it is too long."""
        self._lines.append(fit(self.say(text).rstrip(), self.width, self.say("…")))

    def text_block(self, text: str, indent: str, more: str | None = None, limit: int = LONG) -> None:
        """Wrapped text, its own newlines kept; at most ``limit`` lines of it."""
        shown = printable(clean(text).rstrip("\n"), self._encoding)
        lines = wrap(shown, self.width, self.say(indent), None if more is None else self.say(more))
        self._lines += lines[:limit]
        self.more(len(lines) - limit, "line", "", " " * (cells(indent) if more is None else cells(more)))

    def verbatim(self, text: str, indent: str) -> None:
        """Lines to copy: each stays one, however long."""
        shown = printable(clean(text).rstrip("\n"), self._encoding)
        self._lines += [self.say(indent) + line for line in shown.split("\n")]

    def more(self, count: int, what: str, where: str, indent: str = "  ") -> None:
        """Say how many were left out, and where they are."""
        if count > 0:
            self.line(f"{indent}… and {outline.plural(count, what)} more{': ' + where if where else ''}")

    def section(self, title: str, detail: str = "") -> None:
        self.line()
        title, detail = self.say(title), self.say(detail)
        head = f"{self.say('──')} {title} "
        tail = f" {detail}" if detail else ""
        room = self.width - cells(head) - cells(tail)
        if room < 3:
            self._lines += wrap(head.rstrip(), self.width)[:2]
            self._lines += wrap(detail, self.width, "  ")[:2] if detail else []
            return
        self._lines.append(head + self.say("─") * room + tail)

    def table(
        self, rows: Sequence[Sequence[str]], right: Sequence[bool], indent: str = "  ", gap: int = 2
    ) -> bool:
        """Aligned columns; whether they fitted (nothing is written if they did not)."""
        said = [[self.say(cell) for cell in row] for row in rows]
        widths = [max(cells(row[i]) for row in said) for i in range(len(right))]
        if len(indent) + sum(widths) + gap * (len(widths) - 1) > self.width:
            return False
        for row in said:
            columns = zip(row, widths, right, strict=True)
            shown = (" " * gap).join(pad(cell, w, r) for cell, w, r in columns)
            self._lines.append((indent + shown).rstrip())
        return True

    def text(self) -> str:
        return "\n".join(self._lines).strip("\n") + "\n"
