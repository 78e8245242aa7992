"""A Summary as text of at most 25 lines, as Markdown of at most 30 lines, and as a Brief."""

from __future__ import annotations

from collections.abc import Mapping

from ..brief import Brief, Question, quoted
from ..render.markdown import code as in_code
from ..render.markdown import escape as inline
from ..render.text import DEFAULT_WIDTH, TextPage, text_page
from ..words import sentences
from ..words.characters import flat
from .summary import REPORTED, Part, Row, Summary, sentence

TEXT_LINES = 25
MARKDOWN_LINES = 30

_ROOM = ((5, 3, 3), (5, 2, 2), (4, 2, 1), (3, 2, 1), (3, 1, 1), (2, 1, 1), (2, 0, 1), (1, 0, 1), (0, 0, 1))
"""Limits to try in turn: rows of a part, lines of a row, and lines of a wrapped text."""


def text(summary: Summary, width: int | None = None, ascii: bool | None = None) -> str:
    """Return the text, ending in a newline. If it would be too long, later rows of each part are only counted."""
    for rows, lines, wrapped in _ROOM:
        page = text_page(width, ascii)
        _write(page, summary, rows, lines, wrapped)
        text = page.text()
        if text.count("\n") <= TEXT_LINES:
            return text
    shown = text.split("\n")  # too many parts even without rows
    return "\n".join([*shown[: TEXT_LINES - 1], shown[-2]]) + "\n"


def in_file(summary: Summary) -> str:
    """Return the text for output that is not a terminal."""
    return text(summary, DEFAULT_WIDTH, ascii=False)


def _write(page: TextPage, summary: Summary, rows: int, lines: int, wrapped: int) -> None:
    page.text_lines(" · ".join((f"compile_lens: {summary.title}", *summary.facts)), "", "  ", wrapped)
    for words in summary.verdict:
        page.text_lines(words, "", "  ", wrapped)
    for part in summary.parts:
        if lines:
            page.line()
        fact = _between(summary, "label", label=part.title, words=part.fact) if part.fact else part.title
        page.text_lines(fact, "", "  ", wrapped)
        if part.table and not (rows and page.table(part.table, [False] + [True] * (len(part.table[0]) - 1))):
            for row in part.table[1 : rows + 1]:
                page.line(f"  {'  '.join(row)}")
        for entry in part.rows[:rows]:
            head = "  ".join(filter(None, (entry.head, entry.place, entry.code.strip())))
            indent = "      " if head else "  "
            if head:
                page.line(f"  {head}")
            for label, words in entry.lines[: lines if head else max(lines, 1)]:
                if label == "code":
                    page.line(f"      {words}")
                else:
                    labelled = _between(summary, "label", label=label, words=words) if label else words
                    page.text_lines(labelled, indent, f"{indent}  ", wrapped)
        if left := _left(summary, part, rows):
            page.line(f"  {left}")
    if lines:
        page.line()
    calls = [_between(summary, "label", label=words, words=call) for words, call in summary.calls]
    if sum(map(len, calls)) + 3 * len(calls) <= page.width + 3:
        calls = [" · ".join(calls)]
    for words in calls:
        page.text_lines(words, "", "  ", 2)


def _left(summary: Summary, part: Part, rows: int) -> str:
    left = max(len(part.rows) - rows, 0) + part.left
    key = "more at" if part.where else "more"
    return _between(summary, key, count=left, where=part.where) if left else ""


def _between(summary: Summary, key: str, **values: str | int) -> str:
    language = summary.language
    words = sentences.in_language(sentences.SHORT_TEXT, language, "short text")
    return sentences.entry(words, key, language, "short text").format(**values)


def issue(summary: Summary) -> str:
    """Return Markdown for an issue."""
    for rows, lines, _ in _ROOM:
        out = [f"### {inline(summary.title)}", "", *(inline(words) for words in summary.verdict), ""]
        for part in summary.parts:
            out.append(f"**{inline(part.title)}**" + (f": {inline(part.fact)}" if part.fact else ""))
            if part.table and rows:
                head, *body = ([inline(cell) for cell in row] for row in part.table)
                out += ["", f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
                out += [f"| {' | '.join(row)} |" for row in body] + [""]
            for row in part.rows[:rows]:
                out.append(f"- {_cell(row)}")
                out += [
                    f"  - {_labelled(summary, label, words)}"
                    for label, words in row.lines[:lines]
                    if words.strip("^ ")
                ]
            if left := _left(summary, part, rows):
                out.append(f"- {inline(left)}")
        out += ["", inline(" · ".join(summary.facts))]
        if len(out) <= MARKDOWN_LINES:
            break
    return "\n".join(out[:MARKDOWN_LINES]) + "\n"


def _cell(row: Row) -> str:
    code = in_code(row.code.strip()) if row.code.strip() else ""
    return " ".join(filter(None, (inline(row.head), inline(row.place), code)))


def _labelled(summary: Summary, label: str, words: str) -> str:
    if label == "code":
        return in_code(words.strip())
    return inline(_between(summary, "label", label=label, words=words) if label else words)


def brief(summary: Summary, calls: Mapping[str, str] | None = None) -> Brief:
    """Return the Brief: sentences and figures are facts, rows are evidence; text of the program or torch is quoted.
    ``calls`` maps Python calls for omitted content to their replacements."""
    facts = [*summary.verdict]
    for part in summary.parts:
        fact = quoted(part.fact, 480) if part.title.lower() in REPORTED else part.fact
        facts += [f"{part.title}: {sentence(fact)}"] if fact else []
    evidence = []
    left_out = []
    for part in summary.parts:
        for row in part.rows:
            code = quoted(row.code.strip()) if row.code.strip() else ""
            head = " ".join(filter(None, (f"{part.title}:", row.head, row.place, code)))
            evidence.append(
                "\n".join(
                    [flat(head), *(_quoted(label, words) for label, words in row.lines if words.strip("^ "))]
                )
            )
        for line in part.table[1:]:
            cells = [f"{name} {cell}".strip() for name, cell in zip(part.table[0], line, strict=True) if cell]
            evidence.append(f"{part.title}: {' · '.join(cells)}")
        if part.left:
            where = part.where if calls is None else calls.get(part.where, "")
            left_out.append(f"{part.left:,} more under {part.title}{': ' + where if where else ''}")
    return Brief(
        flat(" · ".join((f"compile_lens: {summary.title}", *summary.facts))),
        tuple(map(flat, facts)),
        tuple(evidence),
        summary.not_to_conclude,
        tuple(Question(words, call) for words, call in summary.calls),
        tuple(left_out),
    )


def _quoted(label: str, words: str) -> str:
    words = quoted(words.strip(), 480) if label in REPORTED else flat(words)
    return f"{label}: {words}" if label else words
