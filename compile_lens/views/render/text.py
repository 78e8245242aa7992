"""A Document as text for a terminal, and the lines that it is written on: of one width, encodable, cut or wrapped."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence

from compile_lens.record.messages import plain

from ..document import NOTE, NUMBER, Document, Entries, Entry, Finding, Prose, Table
from ..words import quantities
from ..words.characters import cells, clean, encodes, fit, flat, pad, printable, wrap

DEFAULT_WIDTH = 100
"""Cells of a line where the terminal does not say, and in files."""

LEAST_WIDTH = 40

LONG = 12
"""Lines of one message shown before the rest is only counted."""

NOTES = 12

SIGNS = "─→←·…~—×²−✓◐✗↳≥"
"""Characters beyond ASCII that a page uses; where one of them cannot be encoded, none is used."""

MARKS = {"compiled": "✓", "partial": "◐", "nothing": "·", "failed": "✗"}


def page(document: Document, width: int | None = None, ascii: bool | None = None) -> str:
    """A Document as text, ending in a newline.

    Args:
        width: cells of the longest line; the terminal's if ``None`` (at most 100 where it does not say), and
            never under 40.
        ascii: use only ASCII; ``None`` asks standard output what it can encode.
    """
    paper = paper_of(width, ascii)
    paper.section(f"compile_lens: {document.heading}", document.created)
    paper.text_block(" · ".join(document.facts), "  ", limit=3)
    for label, text in document.details:
        paper.text_block(f"{label}: {text}" if label else text, "  ", "    ", limit=4)
    paper.line()
    paper.text_block(document.verdict, f"  {MARKS[document.state]} ", "    ", limit=6)
    for finding in document.findings:
        _finding(paper, finding)
    if document.notes:
        paper.section("also")
    for note in document.notes[:NOTES]:
        paper.text_block(note, "  note: ", "    ", limit=4)
    paper.more(len(document.notes) - NOTES, "note", document.notes_where)
    return paper.text()


def _finding(paper: Paper, finding: Finding) -> None:
    title = finding.title
    paper.section(title[:1].lower() + title[1:] if title[1:2].islower() else title, finding.fact)
    for section in finding.sections:
        if isinstance(section, (Table, Prose)):
            _titled(paper, section)
        if isinstance(section, Table) and section.rows:
            _table(paper, section, finding.few, finding.where)
        if isinstance(section, Entries):
            for entry in section.entries[: finding.few]:
                _entry(paper, entry)
            paper.more(len(section.entries) - finding.few, section.style, section.where)


def _titled(paper: Paper, section: Table | Prose) -> None:
    """Write the lines over the rows of a table, if there are any."""
    if section.title:
        paper.text_block(section.title, "  ", "    ", limit=2)
    for words in section.words if isinstance(section, Table) else section.paragraphs:
        paper.text_block(words, "    ", limit=6)


def _table(paper: Paper, table: Table, limit: int, where: str) -> None:
    columns = [i for i, kind in enumerate(table.kinds) if kind != NOTE]
    right = [table.kinds[i] == NUMBER for i in columns]
    rows = [quantities.cells(row) for row in table.rows[:limit]]
    shown = [[row[i] for i in columns] for row in rows]
    if NOTE in table.kinds or not paper.table([[table.head[i] for i in columns], *shown], right):
        heads = [table.head[i] for i in columns if table.head[i]]
        if len(heads) > 2:  # figures without their names would say nothing
            paper.text_block(" · ".join(heads) + ":", "  ", "      ", limit=2)
        for row, texts in zip(rows, shown, strict=True):
            paper.text_block("  ".join(text for text in texts if text), "  ", "      ", limit=4)
            for text, kind in zip(row, table.kinds, strict=True):
                if kind == NOTE and text:
                    paper.text_block(text.strip("\n"), "      ", limit=10)
    paper.more(max(len(table.rows) - limit, 0) + table.left, "row", where)


def _entry(paper: Paper, entry: Entry) -> None:
    paper.text_block(entry.head, "  ", "    ", limit=4)
    if entry.detail:
        paper.text_block(entry.detail, "    ", "      ", limit=3)
    for label, text in entry.lines:
        paper.text_block(text, f"    {label}: " if label else "    ", "      " if label else None, limit=6)
    for frame in entry.frames[-5:]:
        paper.line(f"    at {frame.file}:{frame.within} in {plain(frame.function)}")
        if frame.text.strip():
            paper.line(f"       {frame.text.strip()}")
    if entry.code is not None:
        paper.verbatim(entry.code.text, "    ")


def paper_of(width: int | None, ascii: bool | None, signs: str = SIGNS) -> Paper:
    """An empty page; ``width`` and ``ascii`` as for ``page``."""
    known = getattr(sys.stdout, "encoding", None) or "utf-8"
    encoding = "utf-8"
    if ascii or (ascii is None and not encodes(signs, known)):
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
            self.line(f"{indent}… and {quantities.plural(count, what)} more{': ' + where if where else ''}")

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
        """Write aligned columns. Return False, with nothing written, if they do not fit."""
        lines = [[self.say(cell) for cell in row] for row in rows]
        widths = [max(cells(row[i]) for row in lines) for i in range(len(right))]
        if len(indent) + sum(widths) + gap * (len(widths) - 1) > self.width:
            return False
        for row in lines:
            columns = zip(row, widths, right, strict=True)
            shown = (" " * gap).join(pad(cell, w, r) for cell, w, r in columns)
            self._lines.append((indent + shown).rstrip())
        return True

    def text(self) -> str:
        return "\n".join(self._lines).strip("\n") + "\n"
