"""A program as HTML: one self-contained fragment without a script, and a page of its own around it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from compile_lens.measures.program import BROKE, EAGER, NEVER, TRACED, Line, lines
from compile_lens.record.graph import Source
from compile_lens.record.program import ProgramRecord
from compile_lens.views.findings.model import NOTE, Finding, Picture, Prose, Row, Section, Table
from compile_lens.views.mime import text_and_html
from compile_lens.views.render.html.dark import style
from compile_lens.views.render.html.listing import listing, source_head
from compile_lens.views.render.html.markup import (
    EDGE,
    FAINT,
    STATE_COLOURS,
    Budget,
    div,
    faint,
    fold,
    frame,
    heading,
    linked,
    mono,
    note,
    picture,
    scrolled,
    span,
    tag,
    text,
)
from compile_lens.views.render.html.sheet import around
from compile_lens.views.render.html.tables import figures_table
from compile_lens.views.words.characters import short
from compile_lens.views.words.outline import plural

from . import outline
from .text import page

_MANY = 200
"""Rows of one table, and functions, before the rest is only counted."""

_OPEN = ("slower", "lines", "differences")
"""Sections that are open at first, side by side; the others are folded."""

_COLUMNS = "display:flex;flex-wrap:wrap;gap:0 28px;margin:0 0 10px 0"
_COLUMN = "flex:1 1 420px;min-width:0;max-width:100%"

INKS = {TRACED: "#1a6b3c", EAGER: "#8a5a00", BROKE: "#b3202c", NEVER: FAINT}
"""The colour of each state of a line; the word stands there too."""


def fragment(program: ProgramRecord, *, standalone: bool = False) -> str:
    """The program as one ``<div class="compile-lens">``. The same program gives the same text.

    ``standalone`` says that it has a page of its own, whose first heading is its name.
    """
    return told(outline.sheet(program), {"lines": _sources(program, Budget())}, standalone=standalone)


def told(
    sheet: outline.Sheet, before: Mapping[str, str] = MappingProxyType({}), *, standalone: bool = False
) -> str:
    """A sheet as one ``<div class="compile-lens">``; ``before`` has HTML to stand before the tables of one."""
    parts = [_header(sheet, standalone), _outcome(sheet)]
    # What it is about stands beside what was written, where there is room for both.
    first = [_finding(f, before.get(f.key, "")) for f in sheet.findings if f.key in _OPEN]
    parts.append(div("".join(div(one, _COLUMN) for one in first), _COLUMNS, "first"))
    parts += [_finding(f) for f in sheet.findings if f.key not in _OPEN]
    if sheet.notes:
        parts.append(heading("Also", "", "notes-heading"))
        parts += [note(text(short(words, 1000))) for words in sheet.notes[:_MANY]]
        parts.append(_left(len(sheet.notes) - _MANY, "note", "program.notes, program.missing"))
    inside = (
        f'<div class="cl-static" style="{frame(1280)}">\n' + "\n".join(p for p in parts if p) + "\n</div>\n"
    )
    return f'<div class="compile-lens cl-program">\n{style(".cl-program")}{inside}</div>\n'


def document(program: ProgramRecord) -> str:
    """The program as a page of its own, with a policy that forbids outside requests."""
    return around(fragment(program, standalone=True), text(short(outline.heading(program), 200)), "")


def mimebundle(
    program: ProgramRecord, include: Iterable[str] | None = None, exclude: Iterable[str] | None = None
) -> dict[str, str]:
    """The program as ``text/html`` and ``text/plain``, as IPython asks for it."""
    return text_and_html(program, page, fragment, include, exclude)


def _header(sheet: outline.Sheet, standalone: bool) -> str:
    name = mono(short(sheet.heading, 300), "font-size:20px;font-weight:600")
    told = [text(short(fact, 300)) for fact in sheet.facts]
    told += [f"ended: {text(short(sheet.ended, 300))}"] if sheet.ended else []
    facts = div(faint(" · ".join(told), "font-size:13px"), "overflow-wrap:anywhere")
    row = "display:flex;flex-wrap:wrap;align-items:baseline;gap:2px 16px"
    first = tag(
        "h1" if standalone else "div", name, "margin:0;font-size:20px;line-height:1.3;overflow-wrap:anywhere"
    )
    return div(first + facts, row, "header")


def _outcome(sheet: outline.Sheet) -> str:
    ink, ground, edge = STATE_COLOURS[sheet.state]
    said = div(
        text(short(sheet.verdict, 1000)),
        f"font-size:16px;font-weight:600;color:{ink}",
    )
    look = f"margin:10px 0 0;padding:7px 14px;border:1px solid {edge};border-radius:8px;background:{ground}"
    return div(said, look, f"outcome cl-{sheet.state}")


def _finding(finding: Finding, inside: str = "") -> str:
    tables = "".join(_section(s, finding.where) for s in finding.sections)
    body = div(text(finding.intro), f"font-size:13px;color:{FAINT};margin:0 0 6px 0") + inside + tables
    if finding.key in _OPEN:
        return heading(text(finding.title), text(finding.fact), f"{finding.key}-heading") + body
    head = tag("b", text(finding.title)) + " " + faint(text(finding.fact))
    return fold(head, body, finding.key)


def _section(section: Section, where: str) -> str:
    if isinstance(section, Picture):
        drawn = picture(section.svg, section.alt, shrink=False)
        return scrolled(drawn, "margin:0 0 8px 0", "icicle")
    if isinstance(section, Prose):
        return _titled(section.title, section.paragraphs)
    return (
        _titled(section.title, section.words) + _table(section, where) if isinstance(section, Table) else ""
    )


def _titled(title: str, words: Iterable[str]) -> str:
    """What stands over the rows of a table, where there is anything."""
    head = div(tag("b", text(title)), "font-size:13px;margin:10px 0 2px 0") if title else ""
    return head + "".join(note(text(short(said, 1000))) for said in words)


def _table(table: Table, where: str) -> str:
    shown = table.rows[:_MANY]
    noted = [i for i, kind in enumerate(table.kinds) if kind == NOTE]
    left = _left(max(len(table.rows) - _MANY, 0) + table.left, "row", where)
    if not noted:
        return figures_table(table.head, [row.cells for row in shown]) + left
    return "".join(_row(row, noted) for row in shown) + left


def _row(row: Row, noted: list[int]) -> str:
    head = " · ".join(cell for i, cell in enumerate(row.cells) if cell and i not in noted)
    lines = [line for i in noted for line in row.cells[i].splitlines() if line.strip()]
    body = "".join(div(_said(short(line.strip(), 1000)), "font-size:13px;padding:1px 0") for line in lines)
    look = f"border-left:3px solid {EDGE};padding:4px 0 4px 12px;margin:8px 0"
    return div(div(text(short(head, 1000)), "font-weight:600") + body, look, "cause")


def _said(words: str) -> str:
    """A line of a cause; what to try stands out."""
    look = _LOOKS.get(words.partition(": ")[0])
    return span(linked(words), look) if look else linked(words)


_LOOKS = {"try": f"color:{STATE_COLOURS['compiled'][0]};font-weight:600", "more": f"color:{FAINT}"}


def _left(count: int, what: str, where: str) -> str:
    return note(f"and {plural(count, what)} more: {text(where)}") if count > 0 else ""


def _sources(program: ProgramRecord, budget: Budget) -> str:
    """The functions with what became of each line beside it."""
    if not program.sources:
        return ""
    states = {(file, line.line): line for file, found in lines(program).items() for line in found}
    told = " · ".join(
        span(tag("b", state), f"color:{INKS[state]}") + faint(text(said.partition(":")[2]))
        for state, said in outline.STATE_WORDS.items()
    )
    parts = [div(told, "font-size:13px;margin:6px 0")]
    for source in program.sources[:_MANY]:
        parts.append(source_head(source))
        gutter, inks = _gutter(source, states)
        parts.append(listing(source.text, "python", budget, source.first_line, gutter, height=420, inks=inks))
    parts.append(_left(len(program.sources) - _MANY, "function", "program.record.sources"))
    return div("".join(parts), "margin:0 0 14px 0", "sources")


def _gutter(source: Source, states: dict[tuple[str, int], Line]) -> tuple[dict[int, str], dict[int, str]]:
    gutter, inks = {}, {}
    for number in range(1, len(source.text.splitlines()) + 1):
        line = states.get((source.file, source.first_line + number - 1))
        if line is not None:
            gutter[number] = ", ".join(line.states)
            inks[number] = INKS[line.state]
    return gutter, inks
