"""The ledger and the other tables of the HTML page."""

from __future__ import annotations

from collections.abc import Sequence

from compile_lens.measures.ledger import COLUMNS, Ledger, Row
from compile_lens.record.capture import Record
from compile_lens.record.compilation import Guard

from ...words import outline, quantities, sentences
from ...words.characters import flat, short
from ...words.palette import INK
from ...words.savings import UNSAVED, saving
from .markup import (
    EDGE,
    FAINT,
    GROUND,
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

_FEW = 3
_NOTES = 40
_GUARDS = 200
_FIGURES = ";text-align:right"


def ledger_table(ledger: Ledger, explain: bool = True) -> str:
    """HTML of the ledger: a row for each phase and their total, and what was measured and what modelled.

    ``explain`` puts the meaning of each column under its title.
    """
    if not ledger.rows:
        return ""
    head = tag("td", "")
    for column in COLUMNS:
        title = text(outline.COLUMN_TITLES[column])
        if explain:
            title += div(
                text(outline.COLUMN_MEANINGS[column]), f"font-weight:400;font-size:11px;color:{FAINT}"
            )
        head += tag("th", title, "vertical-align:top")
    rows = [table_row(head, SUNK, _FIGURES)]
    rows += [_row(row, last=row is ledger.rows[-1]) for row in ledger.rows]
    look = f"border-collapse:collapse;margin:0;background:{GROUND};color:{INK};border:1px solid {EDGE}"
    # Room that the cells of all rows have is the table's to say: written on each, it is a kilobyte.
    table = scrolled(tag("table", "".join(rows), f"{look};font-size:13px", "ledger-table", 'cellpadding="8"'))
    notes = tuple(dict.fromkeys(n for row in ledger.rows[:-1] for n in row.notes))
    page = table + div(
        text(outline.basis_note(ledger.rows)), f"font-size:12px;color:{FAINT};margin:6px 0", "basis"
    )
    said = "".join(note(text(n)) for n in notes[:_NOTES])
    if len(notes) > _NOTES:
        said += note(f"and {quantities.plural(len(notes) - _NOTES, 'note')} more: capture.ledger.total.notes")
    if len(notes) > _FEW:
        said = fold(f"why {quantities.plural(len(notes), 'figure')} are not known", said, "ledger-notes")
    return page + said


def figures_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """HTML of plain rows under a head; every string is escaped. ``""`` without rows."""
    if not rows:
        return ""
    look = "padding:4px 12px;text-align:left"

    def line(cells: Sequence[str], name: str, ground: str) -> str:
        return table_row("".join(tag(name, text(short(cell, 1000)), look) for cell in cells), ground)

    made = [line(head, "th", SUNK), *(line(row, "td", GROUND) for row in rows)]
    frame = f"border-collapse:collapse;margin:6px 0;background:{GROUND};color:{INK};border:1px solid {EDGE}"
    return scrolled(tag("table", "".join(made), f"{frame};font-size:12px", "figures-table"))


def _row(row: Row, last: bool) -> str:
    ground = SUNK if last else GROUND
    colour = PHASE_COLOURS.get(row.name, INK)
    cells = tag("th", text(row.name), f"text-align:left;color:{colour}")
    for column, value in zip(COLUMNS, row.figures, strict=True):
        shown = quantities.figure(value)
        if value is not None and column.startswith("bytes"):
            shown += " B"
        cells += tag("td", tag("b", shown) if last or column in ("eager_ops", "launches") else shown)
    return table_row(cells, ground, _FIGURES)


def savings(capture: Record, ledger: Ledger) -> str:
    """The ledger in two large lines: work before and after, bytes before and after."""
    tiles = []
    for what, before, after in saving(ledger):
        colour = INK if UNSAVED in what else PHASE_COLOURS["inference"]
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
    """HTML of guards: kind, source and text, one to a line."""
    across = max((len(flat(g.kind)) for g in guards[:_GUARDS]), default=0)
    lines = [f"{text(g.kind.ljust(across))}  {text(g.text)}" for g in guards[:_GUARDS]]
    look = (
        f"{MONO};font-size:12px;line-height:1.7;margin:0;border:0;padding:0;color:{INK};background:{GROUND}"
    )
    page = tag("pre", "\n".join(lines), f"{look};white-space:pre-wrap", "guards-list")
    left = sentences.guards_left(len(guards) - _GUARDS)
    return page + note(left) if left else page
