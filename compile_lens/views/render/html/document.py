"""A Document as HTML: one self-contained fragment without a script, and a page of its own around it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from ...document import NOTE, Document, Entries, Entry, Finding, Listings, Picture, Prose, Row, Section, Table
from ...words import quantities
from ...words.characters import short
from ...words.quantities import plural
from .dark import style
from .listing import listing, source_head
from .markup import (
    EDGE,
    FAINT,
    MONO,
    STATE_COLOURS,
    Budget,
    block,
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
from .sheet import around
from .tables import figures_table

MANY = 200
"""Rows of one table, functions and notes before the rest is only counted."""

WIDEST = {"what_if": 1600}
"""Pixels of the widest page of a kind; of the others 1280."""

INKS = {"compiled": "#1a6b3c", "eager": "#8a5a00", "broke": "#b3202c", "never": FAINT}
"""The colour of each state of a line; the word stands there too."""

WRAPS = "white-space:pre-wrap;overflow-wrap:anywhere"
"""Code to copy: a line too long for its place goes on below, and is copied as one."""

_COLUMNS = "display:flex;flex-wrap:wrap;gap:0 28px;margin:0 0 10px 0"
_COLUMN = "flex:1 1 420px;min-width:0;max-width:100%"

_NOTHING: Mapping[str, str] = MappingProxyType({})


def fragment(document: Document, inserts: Mapping[str, str] = _NOTHING, *, standalone: bool = False) -> str:
    """A Document as one ``<div class="compile-lens">``. The same Document gives the same text.

    Args:
        inserts: HTML to put under entries, by their keys.
        standalone: the fragment has a page of its own, whose first heading is the name.
    """
    kind = f"cl-{document.kind.replace('_', '-')}"
    draw = _Sections(inserts)
    parts = [_header(document, standalone), _outcome(document)]
    # The cause and the lines it is about stand side by side where there is room for both.
    first = [div(draw.finding(f), _COLUMN) for f in document.findings if f.open]
    parts.append(div("".join(first), _COLUMNS, "first") if first else "")
    parts += [draw.finding(f) for f in document.findings if not f.open]
    if document.notes:
        parts.append(heading("Also", "", "notes-heading"))
        parts += [note(text(short(words, 1000))) for words in document.notes[:MANY]]
        parts.append(_left(len(document.notes) - MANY, "note", document.notes_where))
    inside = "\n".join(part for part in parts if part)
    look = frame(WIDEST.get(document.kind, 1280))
    return (
        f'<div class="compile-lens {kind}">\n{style(f".{kind}")}'
        f'<div class="cl-static" style="{look}">\n{inside}\n</div>\n</div>\n'
    )


def page(document: Document, inserts: Mapping[str, str] = _NOTHING) -> str:
    """A Document as a page of its own, with a policy that forbids outside requests."""
    title = text(short(document.heading, 200))
    whole = fragment(document, inserts, standalone=True)
    return around(whole, title, "", widest=WIDEST.get(document.kind, 1280))


def _header(document: Document, standalone: bool) -> str:
    name = mono(short(document.heading, 400), "font-size:20px;font-weight:600")
    facts = [text(short(fact, 300)) for fact in document.facts]
    facts += [f"{text(label)}: {text(short(words, 300))}" for label, words in document.details]
    below = div(faint(" · ".join(facts), "font-size:13px"), "overflow-wrap:anywhere") if facts else ""
    row = "display:flex;flex-wrap:wrap;align-items:baseline;gap:2px 16px"
    first = tag(
        "h1" if standalone else "div", name, "margin:0;font-size:20px;line-height:1.3;overflow-wrap:anywhere"
    )
    return div(first + below, row, "header")


def _outcome(document: Document) -> str:
    ink, ground, edge = STATE_COLOURS[document.state]
    verdict = div(
        text(short(document.verdict, 1000)),
        f"font-size:16px;font-weight:600;color:{ink};overflow-wrap:anywhere",
    )
    look = f"margin:10px 0 0;padding:7px 14px;border:1px solid {edge};border-radius:8px;background:{ground}"
    return div(verdict, look, f"outcome cl-{document.state}")


class _Sections:
    """HTML of findings and their sections."""

    def __init__(self, inserts: Mapping[str, str]) -> None:
        self._inserts = inserts
        self._budget = Budget()

    def finding(self, finding: Finding) -> str:
        shown = "".join(self._section(section, finding.where) for section in finding.sections)
        intro = div(text(finding.intro), f"font-size:13px;color:{FAINT};margin:0 0 6px 0")
        body = (intro if finding.intro else "") + shown
        # Entries fold one by one.
        if finding.open or any(isinstance(section, Entries) for section in finding.sections):
            return heading(text(finding.title), text(finding.fact), f"{finding.key}-heading") + body
        head = tag("b", text(finding.title)) + " " + faint(text(finding.fact))
        return fold(head, body, finding.key)

    def _section(self, section: Section, where: str) -> str:
        if isinstance(section, Picture):
            drawn = picture(section.svg, section.alt, shrink=False)
            return scrolled(drawn, "margin:0 0 8px 0", "icicle")
        if isinstance(section, Prose):
            return _titled(section.title, section.paragraphs)
        if isinstance(section, Table):
            return _titled(section.title, section.words) + _table(section, where)
        if isinstance(section, Entries):
            return "".join(self._entry(entry, section.style) for entry in section.entries)
        return self._listings(section) if isinstance(section, Listings) else ""

    def _entry(self, entry: Entry, style: str) -> str:
        head = mono(entry.head, "font-weight:600") + (f" {text(entry.detail)}" if entry.detail else "")
        lines = [
            div((span(text(label), f"color:{FAINT};margin-right:6px") if label else "") + block(short(words)))
            for label, words in entry.lines
        ]
        body = fold(head, "".join(lines) + self._inserts.get(entry.key, ""), style)
        if entry.code is None:
            return body
        look = f"{MONO};font-size:13px;margin:4px 0 12px 12px;{WRAPS}"
        return body + tag("pre", block(entry.code.text), look, "apply")

    def _listings(self, section: Listings) -> str:
        if not section.listings:
            return ""
        legend = " · ".join(
            span(tag("b", text(state)), f"color:{INKS[state]}") + faint(text(f" {words}"))
            for state, words in section.legend
        )
        parts = [div(legend, "font-size:13px;margin:6px 0")] if legend else []
        for one in section.listings[:MANY]:
            source = one.source
            parts.append(source_head(source, one.modules))
            marks = {number - source.first_line + 1: mark for number, mark in one.marks.items()}
            words = {number: mark for number, (mark, _) in marks.items()}
            inks = {number: INKS[state] for number, (_, state) in marks.items()}
            parts.append(listing(source.text, "python", self._budget, source.first_line, words, inks=inks))
        parts.append(_left(len(section.listings) - MANY, "function", section.where))
        return div("".join(parts), "margin:0 0 14px 0", "sources")


def _titled(title: str, words: Iterable[str]) -> str:
    """The lines over the rows of a table, if there are any."""
    head = div(tag("b", text(title)), "font-size:13px;margin:10px 0 2px 0") if title else ""
    return head + "".join(note(text(short(one, 1000))) for one in words)


def _table(table: Table, where: str) -> str:
    shown = table.rows[:MANY]
    noted = [i for i, kind in enumerate(table.kinds) if kind == NOTE]
    left = _left(max(len(table.rows) - MANY, 0) + table.left, "row", where)
    if not noted:
        return figures_table(table.head, [quantities.cells(row) for row in shown]) + left
    return "".join(_row(row, noted) for row in shown) + left


def _row(row: Row, noted: list[int]) -> str:
    cells = quantities.cells(row)
    head = " · ".join(cell for i, cell in enumerate(cells) if cell and i not in noted)
    lines = [line for i in noted for line in cells[i].splitlines() if line.strip()]
    body = "".join(div(_cause(short(line.strip(), 1000)), "font-size:13px;padding:1px 0") for line in lines)
    look = f"border-left:3px solid {EDGE};padding:4px 0 4px 12px;margin:8px 0"
    return div(div(text(short(head, 1000)), "font-weight:600") + body, look, "cause")


def _cause(words: str) -> str:
    """A line of a cause; a remedy stands out."""
    look = _LOOKS.get(words.partition(": ")[0])
    return span(linked(words), look) if look else linked(words)


_LOOKS = {"try": f"color:{STATE_COLOURS['compiled'][0]};font-weight:600", "more": f"color:{FAINT}"}


def _left(count: int, what: str, where: str) -> str:
    return note(f"and {plural(count, what)} more: {text(where)}") if count > 0 else ""
