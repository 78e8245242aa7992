"""The flow in HTML: for each phase its way in one line, then every stage as a table, a column for each phase."""

from __future__ import annotations

from collections.abc import Sequence

from compile_lens.measures.ledger import Ledger
from compile_lens.record.capture import Record
from compile_lens.record.compilation import Compilation

from ...words import outline, quantities, sentences
from ...words.flow import ways
from ...words.palette import INK
from .markup import EDGE, FAINT, GROUND, MISSING_INK, PHASE_COLOURS, SUNK, div, scrolled, table_row, tag, text


def flow(capture: Record, compilation: Compilation, ledger: Ledger) -> str:
    """HTML of the way of one compilation: what each stage holds, how long it took, or why it was not seen."""
    lanes = outline.lanes(capture, compilation)
    if not lanes:
        return div(sentences.NO_STAGE, f"color:{FAINT};font-size:13px", "flow")
    lines = []
    for way in ways(capture, compilation, ledger):
        name = tag("b", f"{text(way.phase)}: ", f"color:{PHASE_COLOURS[way.phase]}") if way.phase else ""
        words = " → ".join(
            tag("b", text(word)) if number % 2 == 0 else text(word) for number, word in enumerate(way.words)
        )
        lines.append(div(name + words, "padding:2px 0", "way"))
    return div("".join(lines) + _table(lanes), "margin:4px 0", "flow")


def _table(lanes: Sequence[outline.Lane]) -> str:
    """The stages in order; those of one phase stand in its column, the others in all."""
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
            found = next((one for one in lane.steps if _title(one) == title), None)
            row += _cell("td", "") if found is None else _holds(found)
        rows.append(row)
    made = "".join(table_row(row, SUNK if row is rows[0] else GROUND) for row in rows)
    look = f"border-collapse:collapse;margin:6px 0;background:{GROUND};color:{INK};border:1px solid {EDGE}"
    return scrolled(tag("table", made, f"{look};font-size:13px", "stages-table"))


def _title(step: outline.Step) -> str:
    return "ATen" if step.key in PHASE_COLOURS and step.key else step.title


def _holds(step: outline.Step, across: int = 1) -> str:
    if step.missing or step.none:
        said = f"not seen: {step.missing}" if step.missing else f"none: {step.none}"
        ink = MISSING_INK if step.missing else FAINT
        return _cell("td", text(_short(said)), f";color:{ink}", across, "missing" if step.missing else "none")
    time = quantities.duration(step.seconds)
    return _cell("td", text(" · ".join([", ".join(step.facts), *([time] if time else [])])), "", across)


def _cell(name: str, content: str, style: str = "", across: int = 1, cls: str = "") -> str:
    look = f"padding:3px 12px;text-align:left{style}"
    return tag(name, content, look, cls, f'colspan="{across}"' if across > 1 else "")


def _short(reason: str) -> str:
    return reason if len(reason) <= 160 else reason[:159] + "…"
