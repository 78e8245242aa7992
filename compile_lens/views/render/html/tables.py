"""Tables of a page: the ledger, plain figures, guards."""

from __future__ import annotations

from collections.abc import Sequence

from compile_lens.record.compilation import Guard

from ...document import BYTES, Flow, Lane, Quantity, Row, Saving, Step, Table
from ...words import quantities, sentences
from ...words.characters import flat, short
from ...words.palette import INK
from .markup import (
    EDGE,
    FAINT,
    GROUND,
    MISSING_INK,
    MONO,
    PHASE_COLOURS,
    SUNK,
    div,
    fold,
    note,
    scrolled,
    span,
    table_row,
    tag,
    text,
)

_MAX_OPEN_NOTES = 3
_MAX_NOTES = 40
_MAX_GUARDS = 200
_FIGURES = ";text-align:right"


def ledger_table(table: Table) -> str:
    """Return the HTML of a ledger: a row for each phase and the total, and what was measured or modelled."""
    if not table.rows:
        return ""
    head = tag("td", "")
    for title, definition in zip(table.head[1:], table.definitions, strict=True):
        look = f"font-weight:400;font-size:11px;color:{FAINT}"
        head += tag("th", text(title) + div(text(definition), look))
    rows = [table_row(head, SUNK, f"{_FIGURES};vertical-align:top")]
    rows += [_row(table, row) for row in table.rows]
    look = f"border-collapse:collapse;margin:0;background:{GROUND};color:{INK};border:1px solid {EDGE}"
    # Padding is an attribute of the table; on each cell it would take a kilobyte.
    shown = scrolled(tag("table", "".join(rows), f"{look};font-size:13px", "ledger-table", 'cellpadding="8"'))
    basis, *reasons = table.notes
    below = div(text(basis), f"font-size:12px;color:{FAINT};margin:6px 0", "basis")
    notes = "".join(note(text(reason)) for reason in reasons[:_MAX_NOTES])
    if left := quantities.more(len(reasons) - _MAX_NOTES, "note", table.where):
        notes += note(text(left))
    if len(reasons) > _MAX_OPEN_NOTES:
        title = f"why {quantities.plural(len(reasons), 'figure')} are not known"
        notes = fold(title, notes, "ledger-notes")
    return shown + below + notes


def figures_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return the HTML of plain rows below a header; strings are escaped. ``""`` without rows."""
    if not rows:
        return ""
    look = "text-align:left"

    def line(cells: Sequence[str], name: str, ground: str) -> str:
        # An empty header is a plain cell, since a screen reader would announce it.
        return table_row(
            "".join(tag(name if cell else "td", text(short(cell, 1000)), look) for cell in cells), ground
        )

    body = [line(head, "th", SUNK), *(line(row, "td", GROUND) for row in rows)]
    frame = f"border-collapse:collapse;margin:6px 0;background:{GROUND};color:{INK};border:1px solid {EDGE}"
    return scrolled(
        tag("table", "".join(body), f"{frame};font-size:12px", "figures-table", 'cellpadding="6"')
    )


def _row(table: Table, row: Row) -> str:
    last = row is table.rows[-1]
    name, *figures = quantities.cells(row)
    cells = tag("th", text(name), f"text-align:left;color:{PHASE_COLOURS.get(name, INK)}")
    for number, (cell, shown) in enumerate(zip(row.cells[1:], figures, strict=True)):
        unit = " B" if isinstance(cell, Quantity) and cell.unit == BYTES else ""
        cells += tag(
            "td", tag("b", shown + unit) if last or table.head[number + 1] in STRONG else shown + unit
        )
    return table_row(cells, SUNK if last else GROUND, _FIGURES)


STRONG = ("eager ops", "launches")
"""Columns in bold."""


def savings(changes: Sequence[Saving]) -> str:
    """Return the savings in large figures, each before and after."""
    tiles = []
    for what, before, after, large in changes:
        colour = PHASE_COLOURS["inference"] if large else INK
        numbers = span(text(after), f"color:{colour};font-weight:700")
        if before:
            numbers = span(text(before), f"color:{INK}") + span(" → ", f"color:{FAINT}") + numbers
        label = what + (", modelled" if before.startswith("~") or after.startswith("~") else "")
        tiles.append(
            div(
                div(numbers, "font-size:20px;line-height:1.3;font-weight:500")
                + div(text(label), f"font-size:12px;color:{FAINT}"),
                f"border:1px solid {EDGE};border-radius:8px;padding:8px 16px;background:{GROUND}",
                "saving",
            )
        )
    return (
        div("".join(tiles), "display:flex;flex-wrap:wrap;gap:10px;margin:12px 0 0", "savings")
        if tiles
        else ""
    )


def guards_list(guards: Sequence[Guard]) -> str:
    """Return the HTML of guards: kind, source and text, one per line."""
    across = max((len(flat(g.kind)) for g in guards[:_MAX_GUARDS]), default=0)
    lines = [f"{text(g.kind.ljust(across))}  {text(g.text)}" for g in guards[:_MAX_GUARDS]]
    look = (
        f"{MONO};font-size:12px;line-height:1.7;margin:0;border:0;padding:0;color:{INK};background:{GROUND}"
    )
    page = tag("pre", "\n".join(lines), f"{look};white-space:pre-wrap", "guards-list")
    left = quantities.more(len(guards) - _MAX_GUARDS, "guard", "capture.guards")
    return page + note(left) if left else page


def flow_of(flow: Flow) -> str:
    """Return the HTML of the stages of one compilation: a line for each phase, then a table."""
    if not flow.lanes:
        return div(sentences.NO_STAGE, f"color:{FAINT};font-size:13px", "flow")
    lines = []
    for phase, words in flow.lines:
        name = tag("b", f"{text(phase)}: ", f"color:{PHASE_COLOURS[phase]}") if phase else ""
        parts = (tag("b", text(word)) if number % 2 == 0 else text(word) for number, word in enumerate(words))
        lines.append(div(name + " → ".join(parts), "padding:2px 0", "way"))
    return div("".join(lines) + _table(flow.lanes), "margin:4px 0", "flow")


def _table(lanes: Sequence[Lane]) -> str:
    """Return the table of the stages in order; those of a phase are in its column, shared ones span all."""
    shared = [step for lane in lanes if not lane.phase for step in lane.steps]
    phases = [lane for lane in lanes if lane.phase]
    across = max(len(phases), 1)
    head = _cell("th", "stage")
    for lane in phases:
        head += _cell("th", text(lane.phase), f";color:{PHASE_COLOURS[lane.phase]}")
    rows = [head + ("" if phases else _cell("th", "holds"))]
    for step in shared:
        rows.append(_cell("th", text(step.title)) + _holds(step, across))
    for title in dict.fromkeys(_title(step) for lane in phases for step in lane.steps):
        row = _cell("th", text(title))
        for lane in phases:
            match = next((one for one in lane.steps if _title(one) == title), None)
            row += _cell("td", "") if match is None else _holds(match)
        rows.append(row)
    body = "".join(table_row(row, SUNK if row is rows[0] else GROUND) for row in rows)
    look = f"border-collapse:collapse;margin:6px 0;background:{GROUND};color:{INK};border:1px solid {EDGE}"
    return scrolled(tag("table", body, f"{look};font-size:13px", "stages-table", 'cellpadding="5"'))


def _title(step: Step) -> str:
    return "ATen" if step.key in PHASE_COLOURS and step.key else step.title


def _holds(step: Step, across: int = 1) -> str:
    if step.missing or step.none:
        words = f"not seen: {step.missing}" if step.missing else f"none: {step.none}"
        ink = MISSING_INK if step.missing else FAINT
        return _cell(
            "td", text(_short(words)), f";color:{ink}", across, "missing" if step.missing else "none"
        )
    time = quantities.duration(step.seconds)
    return _cell("td", text(" · ".join([", ".join(step.facts), *([time] if time else [])])), "", across)


def _cell(name: str, content: str, style: str = "", across: int = 1, cls: str = "") -> str:
    look = f"text-align:left{style}"
    return tag(name, content, look, cls, f'colspan="{across}"' if across > 1 else "")


def _short(reason: str) -> str:
    return reason if len(reason) <= 160 else reason[:159] + "…"
