"""Rendering of a Document as text for a terminal: lines of limited width, encodable, cut or wrapped."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence

from compile_lens.record.messages import plain_name

from ..document import (
    ANY,
    NOTE,
    NUMBER,
    TERMINAL,
    Document,
    Entries,
    Entry,
    Finding,
    Flow,
    Group,
    Prose,
    Section,
    Table,
)
from ..words import quantities, sentences
from ..words.characters import aligned, cells, clean, encodes, fit, flat, pad, printable, wrap
from ..words.failed_line import failed_at
from ..words.flow import ARROW
from ..words.outcome import saved

DEFAULT_WIDTH = 100
"""Line width in cells for files, and if the terminal's is unknown."""

LEAST_WIDTH = 40

MAX_MESSAGE_LINES = 12
"""Maximum lines of a message; the rest is only counted."""

MESSAGE = 60
"""Maximum lines of a failure's message, whose end may say what to do."""

MAX_NOTES = 12
"""Maximum inputs and notes; the rest is only counted."""

BRIEF = 3
"""Maximum lines of a finding in a group; the rest is only counted."""

SIGNS = "─→←·…~—×²−✓◐✗↳≥"
"""Non-ASCII characters that a page uses; if any cannot be encoded, none is used."""

MARKS = {"compiled": "✓", "partial": "◐", "nothing": "·", "failed": "✗"}


def page(document: Document, width: int | None = None, ascii: bool | None = None) -> str:
    """Return a Document as text, ending in a newline.

    Args:
        width: maximum line width in cells, at least 40; None for the terminal's, or 100 if unknown.
        ascii: True for ASCII only; None to decide by the encoding of standard output.
    """
    page = text_page(width, ascii)
    page.section(f"compile_lens: {document.heading}", document.created)
    if document.facts:
        page.text_block(" · ".join(document.facts), "  ", limit=3)
    for label, text in document.details:
        page.text_block(f"{label}: {text}" if label else text, "  ", "    ", limit=4)
    if document.inputs is not None:
        _inputs(page, document.inputs)
    _outcome(page, document)
    for finding in document.findings:
        if finding.room in (ANY, TERMINAL):
            _finding(page, finding)
    if document.also or document.notes:
        page.section(document.notes_title or "also")
    for fact in document.also:
        page.text_block(fact, "  ", "    ", limit=4)
    for note in document.notes[:MAX_NOTES]:
        page.text_block(note, "  note: ", "    ", limit=4)
    page.more(len(document.notes) - MAX_NOTES, "note", document.notes_where)
    return page.text()


def _inputs(page: TextPage, inputs: Sequence[str]) -> None:
    if not inputs:
        page.line("  no inputs")
    for text in inputs[:MAX_NOTES]:
        page.text_block(text, "  ", "      ", limit=2)
    page.more(len(inputs) - MAX_NOTES, "input", "capture.inputs")


def _outcome(page: TextPage, document: Document) -> None:
    page.line()
    page.text_block(document.verdict, f"  {MARKS[document.state]} ", "    ", limit=6)
    for change in document.changes:
        page.text_block(saved(change), "    ", "      ", limit=3)
    for remark in document.remarks:
        page.text_block(remark, "    ", "      ")
    if document.failure is not None:
        for line in failed_at(document.failure):
            page.verbatim(line)
        page.text_block(document.failure.message, "    ", limit=MESSAGE)
        if document.below:
            page.line("    every stage before the failure is below")


def _finding(page: TextPage, finding: Finding) -> None:
    title = finding.title
    if title:
        page.section(title[:1].lower() + title[1:] if title[1:2].islower() else title, finding.fact)
    for section in finding.sections:
        if getattr(section, "room", ANY) in (ANY, TERMINAL):
            _section(page, section, finding)


def _section(page: TextPage, section: Section, finding: Finding) -> None:
    if isinstance(section, (Table, Prose)):
        _titled(page, section)
    if isinstance(section, Table) and section.ledger:
        _ledger(page, section, finding.few)
    elif isinstance(section, Table) and section.rows:
        _table(page, section, finding.few, finding.where)
    elif isinstance(section, Entries):
        for entry in section.entries[: finding.few]:
            if section.listed:
                _item(page, entry)
            else:
                _entry(page, entry, section.style)
        left = max(len(section.entries) - finding.few, 0) + section.left
        page.more(left, section.style, section.where)
    elif isinstance(section, Flow):
        _flow(page, section)
    elif isinstance(section, Group):
        _group(page, section)


def _item(page: TextPage, entry: Entry) -> None:
    """Write one line of a list, and its facts."""
    page.text_block(f"{entry.head} {entry.detail}" if entry.detail else entry.head, "  ", "    ", limit=5)
    code = entry.code.text.splitlines() if entry.code is not None else []
    for label, text in entry.lines[:MAX_MESSAGE_LINES]:
        page.text_block(f"{label}: {text}" if label else text, "      · ", "        ", limit=5)
    for line in code[:MAX_MESSAGE_LINES]:
        page.line(f"      {line}")
    if "\n" in entry.whole:
        page.line("      · in whole on the page and in .json")
    page.more(max(len(entry.lines), len(code)) - MAX_MESSAGE_LINES, "line", "", "      ")


def _titled(page: TextPage, section: Table | Prose) -> None:
    """Write the title and sentences above a table."""
    if isinstance(section, Prose) and section.inline:
        page.text_block(f"{section.title}: {' '.join(section.paragraphs)}", "  ", "    ")
        return
    if section.title:
        page.text_block(section.title, "  ", "    ", limit=2)
    if isinstance(section, Table):
        for words in section.words:
            page.text_block(words, "    ", limit=6)
    elif len(section.paragraphs) > 1 and section.title:
        for words in section.paragraphs[:MAX_NOTES]:
            page.text_block(words, "    · ", "      ", limit=6)
        page.more(len(section.paragraphs) - MAX_NOTES, "thing", indent="    ")
    else:
        for words in section.paragraphs:
            page.text_block(words, "    " if section.title else "  ", limit=6)


def _table(page: TextPage, table: Table, limit: int, where: str) -> None:
    columns = [i for i, kind in enumerate(table.kinds) if kind != NOTE]
    right = [table.kinds[i] == NUMBER for i in columns]
    rows = [quantities.cells(row) for row in table.rows[:limit]]
    shown = [[row[i] for i in columns] for row in rows]
    if NOTE in table.kinds or not page.table([[table.head[i] for i in columns], *shown], right):
        heads = [table.head[i] for i in columns if table.head[i]]
        if len(heads) > 2:  # figures need their names
            page.text_block(" · ".join(heads) + ":", "  ", "      ", limit=2)
        for row, texts in zip(rows, shown, strict=True):
            page.text_block("  ".join(text for text in texts if text), "  ", "      ", limit=4)
            for text, kind in zip(row, table.kinds, strict=True):
                if kind == NOTE and text:
                    page.text_block(text.strip("\n"), "      ", limit=10)
    page.more(max(len(table.rows) - limit, 0) + table.left, "row", where)


def _ledger(page: TextPage, table: Table, notes: int) -> None:
    """Write the ledger; if the terminal is narrow as a transposed table, or else one line for each figure."""
    rows = [list(table.head), *(list(quantities.cells(row)) for row in table.rows)]
    right = [False] + [True] * (len(table.head) - 1)
    turned = [list(column) for column in zip(*rows, strict=True)]
    if not page.table(rows, right) and not page.table(turned, [False] + [True] * len(table.rows)):
        for row in rows[1:]:
            for name, value in zip(table.head[1:], row[1:], strict=True):
                page.line(f"  {row[0]} {name}: {value}")
    basis, *reasons = table.notes
    page.text_block(basis, "  ", limit=3)
    for reason in reasons[:notes]:
        page.text_block(reason, "  · ", "    ", limit=3)
    page.more(len(reasons) - notes, "note", table.where)


def _flow(page: TextPage, flow: Flow) -> None:
    for phase, words in flow.lines:
        page.text_block(
            f"{phase}: {ARROW.join(words)}" if phase else ARROW.join(words), "  ", "    ", limit=6
        )
    rows: list[tuple[str, ...]] = []
    for lane in flow.lanes:
        for step in lane.steps:
            name = f"  ↳ {step.title}" if lane.phase and step.key != lane.phase else step.title
            if step.missing or step.none:
                rows.append((name, "missing:", step.missing) if step.missing else (name, "none:", step.none))
            else:
                rows.append((name, *(*step.facts, "")[:2], quantities.duration(step.seconds)))
    if not rows:
        page.line(f"  {sentences.NO_STAGE}")
        return
    rows = [tuple(map(page.say, row)) for row in rows]
    whole = [row for row in rows if len(row) == 4]
    widths = [max((cells(row[i]) for row in whole), default=0) for i in range(4)]
    widths[0] = max(cells(row[0]) for row in rows)
    for row in rows:
        if len(row) == 3:
            page.text_block(row[2], f"  {pad(row[0], widths[0])}  {row[1]} ", " " * 6, limit=3)
        else:
            line = "  ".join(
                pad(text, width, i > 0) for i, (text, width) in enumerate(zip(row, widths, strict=True))
            )
            page.line(f"  {line}")
    if flow.dynamic:
        page.text_block(f"dynamic: {', '.join(flow.dynamic)}", "  ", "    ", limit=4)


def _group(page: TextPage, group: Group) -> None:
    for finding in group.findings:
        page.line(f"  {finding.title}: {finding.fact}")
        for words in finding.brief[:BRIEF]:
            room = 2 * (page.width - 8)
            page.text_block(words if len(words) <= room else f"{words[: room - 1]}…", "    · ", "      ")
        left = len(finding.brief) - BRIEF
        page.line(f"    {f'… and {left} more: ' if left > 0 else ''}{finding.where}")
    for reason, titles in group.unknown:
        page.text_block(f"{', '.join(titles)}: {reason}", "  ", "    ", limit=2)


def _entry(page: TextPage, entry: Entry, style: str) -> None:
    if entry.detail and cells(page.say(entry.head)) + cells(page.say(entry.detail)) + 5 <= page.width:
        page.line(f"  {entry.head}   {entry.detail}")
    else:
        page.text_block(entry.head, "  ", None if style == "source" else "    ", limit=5)
        if entry.detail:
            page.text_block(entry.detail, "    ", "      ", limit=3)
    for label, text in entry.lines:
        hangs = label or entry.detail or text.startswith("· ")
        limit = 4 if entry.detail else 6
        page.text_block(text, f"    {label}: " if label else "    ", "      " if hangs else None, limit)
    for frame in entry.frames[-5:]:
        page.line(f"    at {frame.file}:{frame.within} in {plain_name(frame.function)}")
        if frame.text.strip():
            page.line(f"       {frame.text.strip()}")
    if entry.code is not None:
        page.verbatim(entry.code.text)


def text_page(width: int | None, ascii: bool | None) -> TextPage:
    """Return an empty page; ``width`` and ``ascii`` as for ``page``."""
    known = getattr(sys.stdout, "encoding", None) or "utf-8"
    encoding = "utf-8"
    if ascii or (ascii is None and not encodes(SIGNS, known)):
        encoding = "ascii" if ascii else known
    if width is None:
        width = shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns
    return TextPage(max(width, LEAST_WIDTH), encoding)


class TextPage:
    """Lines of a page. Every text is cleaned, made encodable, and cut or wrapped, except code to copy."""

    def __init__(self, width: int, encoding: str) -> None:
        self.width = width
        self._encoding = encoding
        self._lines: list[str] = []

    def say(self, text: str) -> str:
        """Return the text as encodable text on one line."""
        return printable(flat(text), self._encoding)

    def line(self, text: str = "") -> None:
        """Add one line, cut if it is too long."""
        self._lines.append(fit(self.say(text).rstrip(), self.width, self.say("…")))

    def text_block(
        self, text: str, indent: str, more: str | None = None, limit: int = MAX_MESSAGE_LINES
    ) -> None:
        """Add wrapped text with its own newlines, at most ``limit`` lines."""
        shown = printable(clean(text).rstrip("\n"), self._encoding)
        lines = wrap(shown, self.width, self.say(indent), None if more is None else self.say(more))
        self._lines += lines[:limit]
        self.more(len(lines) - limit, "line", "", " " * (cells(indent) if more is None else cells(more)))

    def text_lines(self, text: str, indent: str, more: str, limit: int) -> None:
        """Add wrapped text of at most ``limit`` lines, with an ellipsis if it is cut."""
        lines = wrap(self.say(text), self.width, indent, more)
        self._lines += lines[: limit - 1]
        if lines[limit - 1 :]:
            rest = " ".join([lines[limit - 1], *(line.strip() for line in lines[limit:])])
            self._lines.append(fit(rest, self.width, self.say("…")))

    def verbatim(self, text: str) -> None:
        """Add lines to copy, which are never wrapped."""
        shown = printable(clean(text).rstrip("\n"), self._encoding)
        self._lines += [f"    {line}" for line in shown.split("\n")]

    def more(self, count: int, what: str, where: str = "", indent: str = "  ") -> None:
        """Add a line with the number of omitted items and where they are."""
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

    def table(self, rows: Sequence[Sequence[str]], right: Sequence[bool]) -> bool:
        """Write aligned columns. Return False, with nothing written, if they do not fit."""
        lines = aligned([[self.say(cell) for cell in row] for row in rows], right, "  ")
        fits = max(map(cells, lines)) <= self.width
        self._lines += lines if fits else []
        return fits

    def text(self) -> str:
        return "\n".join(self._lines).strip("\n") + "\n"
