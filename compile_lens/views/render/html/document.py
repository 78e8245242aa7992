"""Rendering of a Document as HTML: a self-contained fragment without scripts, or a complete page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from compile_lens.record.messages import plain_name

from ...document import (
    ANY,
    NOTE,
    PAGE,
    Columns,
    Compiled,
    Document,
    Entries,
    Entry,
    Finding,
    Flow,
    Group,
    Listings,
    Picture,
    Prose,
    Row,
    Section,
    Table,
)
from ...words import quantities, sentences
from ...words.characters import short
from ...words.failed_line import failed_at
from ...words.palette import INK
from .listing import listing, source_head
from .markup import (
    EDGE,
    FAINT,
    GROUND,
    MONO,
    STATE_COLOURS,
    SUNK,
    Budget,
    around,
    block,
    dark_style,
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
from .stages import Stages, compilation
from .tables import figures_table, flow_of, ledger_table, savings

MAX_ROWS = 200
"""Maximum rows of a table, entries, functions and notes; the rest is only counted."""

INPUTS = 40
BRIEF = 8
"""Maximum lines of a finding in a group; the rest is only counted."""

ENTRIES = 60
"""Maximum lines of a list; the rest is only counted."""

LINES = 2_000
"""Maximum lines of a text difference."""

WIDEST = {"what_if": 1600, "comparison": 1600, "difference": 1600}
"""Maximum page width in pixels by kind of Document; 1280 for others."""

INKS = {"compiled": "#1a6b3c", "eager": "#8a5a00", "broke": "#b3202c", "never": FAINT}
"""Colour of each state of a line, which is also shown in words."""

WRAPS = "white-space:pre-wrap;overflow-wrap:anywhere"
"""Style of code to copy: long lines wrap but are copied as one."""

_COLUMNS = "display:flex;flex-wrap:wrap;gap:0 28px;margin:0 0 10px 0"
_COLUMN = "flex:1 1 420px;min-width:0;max-width:100%"

_NOTHING: Mapping[str, str] = MappingProxyType({})


def fragment(
    document: Document, inserts: Mapping[str, str] = _NOTHING, live: str = "", *, standalone: bool = False
) -> str:
    """Return a Document as one ``<div class="compile-lens">``. The output is deterministic.

    Args:
        inserts: HTML to insert below entries, by entry key.
        live: HTML that makes the fragment interactive.
        standalone: True for a complete page, whose first heading is the name.
    """
    kind = f"cl-{document.kind.replace('_', '-')}"
    own = " data-standalone" if standalone and live else ""
    inside = static(document, inserts, standalone=standalone)
    return f'<div class="compile-lens {kind}"{own}>\n{dark_style(f".{kind}")}{inside}{live}</div>\n'


def static(document: Document, inserts: Mapping[str, str] = _NOTHING, *, standalone: bool = False) -> str:
    """Return the static layer of a page: one ``<div class="cl-static">``. It has a first heading on a complete page,
    but not in a notebook, whose headings are the author's."""
    inside = f"{_header(document, standalone)}\n{body(document, inserts)}"
    look = frame(WIDEST.get(document.kind, 1280))
    return f'<div class="cl-static" style="{look}">\n{inside}\n</div>\n'


def body(document: Document, inserts: Mapping[str, str] = _NOTHING) -> str:
    """Return the HTML of a Document below its heading."""
    draw = _Sections(document, inserts)
    parts = [_outcome(document), savings(document.changes)]
    parts += [note(text(remark)) for remark in document.remarks]
    shown = [finding for finding in document.findings if finding.room in (ANY, PAGE)]
    # The cause and its lines are side by side if there is room.
    first = [div(draw.finding(finding), _COLUMN) for finding in shown if finding.beside]
    parts.append(div("".join(first), _COLUMNS, "first") if first else "")
    parts += [draw.finding(finding) for finding in shown if not finding.beside]
    if document.also or document.notes:
        parts.append(heading(text(document.notes_title or "Also"), "", "notes-heading"))
        parts += [div(text(fact), f"font-size:13px;color:{FAINT}") for fact in document.also]
        parts += [note(text(short(words, 1000))) for words in document.notes[:MAX_ROWS]]
        parts.append(_left(len(document.notes) - MAX_ROWS, "note", document.notes_where))
    return "\n".join(part for part in parts if part)


def page(document: Document, inserts: Mapping[str, str] = _NOTHING, live: str = "", above: str = "") -> str:
    """Return a Document as a complete page, below the HTML ``above``, with a policy that forbids outside requests."""
    title = text(short(document.heading, 200))
    whole = above + fragment(document, inserts, live, standalone=True)
    return around(whole, title, "", widest=WIDEST.get(document.kind, 1280))


def _header(document: Document, standalone: bool) -> str:
    brand = span("compile_lens", f"font-size:12px;font-weight:600;letter-spacing:.4px;color:{FAINT}")
    created = text(short(document.created, 40))
    when = span(created, f"font-size:12px;color:{FAINT}") if created else ""
    top = div(brand + when, "display:flex;justify-content:space-between;flex-wrap:wrap;gap:8px")
    look = "margin:2px 0 6px;font-size:22px;line-height:1.3;overflow-wrap:anywhere"
    name = tag("h1" if standalone else "div", mono(short(document.heading, 400), "font-weight:600"), look)
    facts = [text(short(fact, 300)) for fact in document.facts]
    facts += [text(short(f"{label}: {words}" if label else words, 1000)) for label, words in document.details]
    below = div(faint(" · ".join(facts), "font-size:13px")) if facts else ""
    # Without inputs, the first lines are visible together with the causes.
    return div((top if document.inputs is not None else "") + name + below + _inputs(document), "", "header")


def _inputs(document: Document) -> str:
    if document.inputs is None:
        return ""
    lines = [div(mono(one, "font-size:13px"), "padding:1px 0") for one in document.inputs[:INPUTS]]
    lines.append(_left(len(document.inputs) - INPUTS, "input", "capture.inputs"))
    shown = "".join(lines) if document.inputs else faint("no inputs", "font-size:13px")
    return div(shown, "margin:6px 0 0", "inputs")


def _outcome(document: Document) -> str:
    ink, ground, edge = STATE_COLOURS[document.state]
    verdict = div(
        text(short(document.verdict, 1000)),
        f"font-weight:600;color:{ink}",
    )
    failure = document.failure
    if failure is not None:
        pre = f"{MONO};font-size:12px;line-height:1.5;white-space:pre-wrap"
        pre += f";margin:6px 0 0;border:0;color:{INK};background:{ground};padding:0"
        words = "\n".join([*failed_at(failure), short(failure.message)])
        verdict += tag("pre", block(words), pre, "failure-message")
        if failure.traceback:
            shown = tag("pre", block(short(failure.traceback, 20_000)), pre.replace(ground, GROUND))
            verdict += fold("traceback", shown, "traceback", level=1)
    if document.below:
        verdict += div(text(document.below), f"margin-top:6px;font-size:13px;color:{ink}")
    look = f"margin:10px 0 0;padding:7px 14px;border:1px solid {edge};border-radius:8px;background:{ground}"
    return div(verdict, look, f"outcome cl-{document.state}")


class _Sections:
    """HTML of findings and their sections."""

    def __init__(self, document: Document, inserts: Mapping[str, str]) -> None:
        self._inserts = inserts
        self._budget = Budget()
        sections = (section for finding in document.findings for section in finding.sections)
        self._compiled = [section for section in sections if isinstance(section, Compiled)]
        self._stages: Stages | None = None

    def finding(self, finding: Finding) -> str:
        """Return the HTML of one finding."""
        shown = "".join(
            self._section(section, finding)
            for section in finding.sections
            if getattr(section, "room", ANY) in (ANY, PAGE)
        )
        intro = div(text(finding.intro), f"font-size:13px;color:{FAINT};margin:0 0 6px 0")
        body = (intro if finding.intro else "") + shown
        # Entries fold one by one.
        if (
            finding.open
            or finding.beside
            or any(isinstance(section, Entries) and not section.listed for section in finding.sections)
        ):
            aside = text(short(finding.aside or finding.fact, 300))
            head = heading(text(finding.title), aside, f"{finding.key}-heading") if finding.title else ""
            return ("" if isinstance(finding.sections[0], Compiled) else head) + body
        head = tag("b", text(finding.title)) + " " + faint(text(finding.fact))
        return fold(head, body, finding.key)

    def _section(self, section: Section, finding: Finding) -> str:
        where = finding.where
        if isinstance(section, Picture):
            drawn = picture(section.svg, section.alt, shrink=False)
            return scrolled(drawn, "margin:0 0 8px 0", "icicle")
        if isinstance(section, Prose) and section.inline:
            words = " ".join(map(text, section.paragraphs))
            return div(f"{tag('b', text(section.title))}: {words}", "padding:2px 0")
        if isinstance(section, Prose):
            return _titled(section.title, section.paragraphs)
        if isinstance(section, Table) and section.ledger:
            return ledger_table(section)
        if isinstance(section, Table):
            return _titled(section.title, section.words) + _table(section, where)
        if isinstance(section, Columns):
            return self._columns(section)
        if isinstance(section, Entries) and section.listed:
            shown = "".join(_item(entry, section.style) for entry in section.entries[:ENTRIES])
            return shown + _left(len(section.entries) - ENTRIES, section.style, section.where)
        if isinstance(section, Entries):
            shown = "".join(self._entry(entry, section) for entry in section.entries[:MAX_ROWS])
            return shown + _left(len(section.entries) - MAX_ROWS, section.style, section.where)
        if isinstance(section, Flow):
            return flow_of(section)
        if isinstance(section, Group):
            return _group(section)
        if isinstance(section, Compiled):
            return self._compilation(section)
        return self._listings(section) if isinstance(section, Listings) else ""

    def _compilation(self, section: Compiled) -> str:
        if self._stages is None:  # one child process draws all
            self._stages = Stages(self._compiled, self._budget)
        above = "".join(flow_of(one) if isinstance(one, Flow) else ledger_table(one) for one in section.above)
        return compilation(section, self._stages, above)

    def _entry(self, entry: Entry, section: Entries) -> str:
        head = tag("b", text(short(entry.head, 400)))
        cause = next((words for label, words in entry.lines if label == "because"), "")
        head += faint(f" {text(short(cause, 400))}") if cause else ""
        head += f" {text(entry.detail)}" if entry.detail else ""
        parts = [_labelled(label, words) for label, words in entry.lines]
        for place in entry.frames:
            at = mono(f"{place.file}:{place.within}", "font-size:12px")
            at += faint(f" in {text(plain_name(place.function))}", "font-size:12px")
            line = place.text.strip()
            code = div(mono(line, "font-size:12px"), "padding-left:18px") if line else ""
            parts.append(div(at + code, "margin:6px 0 0", "frame"))
        if entry.whole:
            whole = div(block(short(entry.whole)), f"white-space:pre-wrap;{MONO};font-size:12px")
            parts.append(fold(faint(sentences.WHOLE_MESSAGE), whole, "message", level=1))
        inside = "".join(parts) + self._inserts.get(entry.key, "")
        body = fold(head, inside, section.style, open=section.open)
        if entry.code is None:
            return body
        look = f"{MONO};font-size:13px;margin:4px 0 12px 12px;{WRAPS}"
        return body + tag("pre", block(entry.code.text), look, "apply")

    def _columns(self, section: Columns) -> str:
        """Return columns of equal width that scroll together if they do not fit."""
        columns = []
        look = f"font-size:12px;color:{FAINT};padding:1px 0"
        for column in section.columns:
            parts = [div(mono(column.title, "font-weight:600;font-size:14px"))]
            parts += [div(text(short(words, 1000)), look) for words in column.words]
            for code in column.blocks:
                head = span(text(code.title), "font-size:12px;overflow-wrap:anywhere")
                if code.text:
                    shown = listing(code.text, code.language or "text", self._budget, height=420)
                    parts.append(fold(head, shown, "kernel", open=not code.folded))
                else:
                    box = f"border:1px solid {EDGE};border-radius:6px;padding:7px 12px;margin:6px 0"
                    parts.append(div(head, box, "kernel"))
            columns.append(div("".join(parts), "flex:1 0 300px;min-width:0;width:300px", "column"))
        return scrolled("".join(columns), "display:flex;gap:10px;margin:8px 0;align-items:stretch", "columns")

    def _listings(self, section: Listings) -> str:
        if not section.listings:
            return ""
        legend = " · ".join(
            span(tag("b", text(state)), f"color:{INKS[state]}") + faint(text(f" {words}"))
            for state, words in section.legend
        )
        parts = [div(legend, "font-size:13px;margin:6px 0")] if legend else []
        for one in section.listings[:MAX_ROWS]:
            source = one.source
            parts.append(source_head(source, one.modules))
            marks = {number - source.first_line + 1: mark for number, mark in one.marks.items()}
            words = {number: mark for number, (mark, _) in marks.items()}
            inks = {number: INKS[state] for number, (_, state) in marks.items()}
            parts.append(listing(source.text, "python", self._budget, source.first_line, words, inks=inks))
        parts.append(_left(len(section.listings) - MAX_ROWS, "function", section.where))
        return div("".join(parts), "", "sources")


def _labelled(label: str, words: str) -> str:
    look = "white-space:pre-wrap;margin:2px 0 0"
    if label == "because":
        return div(block(short(words)), f"{look};font-weight:600;color:{STATE_COLOURS['partial'][0]}")
    strong = span(label.capitalize(), f"font-weight:600;color:{FAINT};margin-right:6px") if label else ""
    return div(strong + block(short(words)), look)


def _group(group: Group) -> str:
    """Return each finding of a group in a few lines; the live page has the rest."""
    parts = []
    for finding in group.findings:
        lines = [div(text(short(words, 300))) for words in finding.brief[:BRIEF]]
        left = len(finding.brief) - len(lines)
        rest = f"and {left} more: " if left > 0 else "all of it: "
        lines.append(div(f"{rest}{text(finding.where)}", f"color:{FAINT}"))
        head = tag("b", text(finding.title)) + " " + faint(text(finding.fact))
        parts.append(fold(head, "".join(lines), "finding"))
    parts += [note(f"{text(', '.join(titles))}: {text(reason)}") for reason, titles in group.unknown]
    return "".join(parts)


def _item(entry: Entry, style: str) -> str:
    """Return a line of a list with its facts below."""
    head = tag("b", text(short(entry.head, 1000)))
    head += f" {mono(short(entry.detail, 1000), 'font-size:12px')}" if entry.detail else ""
    look = f"padding:1px 0 1px 22px;font-size:13px;color:{FAINT}"
    facts = ""
    for label, words in (*entry.lines, *(("", line) for line in entry.whole.splitlines())):
        strong = mono(label, "font-weight:600;font-size:13px;margin-right:6px") if label else ""
        facts += div(strong + text(short(words, 2000)), look, "fact")
    code = "" if entry.code is None else _changed_lines(entry.code.text.splitlines())
    return div(div(head) + facts + code, "margin:6px 0;overflow-wrap:anywhere", style)


def _changed_lines(lines: Sequence[str]) -> str:
    """Return the lines of a text difference, each in the colour of its side."""
    shown = ""
    for line in lines[:LINES]:
        ink, ground, _ = STATE_COLOURS.get(_CHANGED.get(line[:1], ""), (INK, "transparent", ""))
        shown += span(block(line), f"color:{ink};background:{ground};display:block;white-space:pre")
    look = f"{MONO};font-size:12px;line-height:1.45;background:{SUNK};padding:8px;margin:4px 0 4px 22px;overflow-x:auto"
    return tag("pre", shown, look, extra='tabindex="0"') + _left(len(lines) - LINES, "line", "Change.facts")


_CHANGED = {"+": "compiled", "-": "failed"}


def _titled(title: str, words: Iterable[str]) -> str:
    """Return the title and the sentences above a table."""
    head = div(tag("b", text(title)), "font-size:13px;margin:10px 0 2px 0") if title else ""
    return head + "".join(note(text(short(one, 1000))) for one in words)


def _table(table: Table, where: str) -> str:
    shown = table.rows[:MAX_ROWS]
    noted = [i for i, kind in enumerate(table.kinds) if kind == NOTE]
    left = _left(max(len(table.rows) - MAX_ROWS, 0) + table.left, "row", where)
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
    """Return a line of a cause, with a remedy highlighted."""
    look = _LOOKS.get(words.partition(": ")[0])
    return span(linked(words), look) if look else linked(words)


_LOOKS = {
    "try": f"color:{STATE_COLOURS['compiled'][0]};font-weight:600",
    "ran": "font-weight:600",
    "more": f"color:{FAINT}",
}


def _left(count: int, what: str, where: str) -> str:
    left = quantities.more(count, what, where)
    return note(text(left)) if left else ""
