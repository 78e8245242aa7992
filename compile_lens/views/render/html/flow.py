"""The flow in HTML: for each phase its way in one line, then every stage as a table, a column for each phase."""

from __future__ import annotations

from collections.abc import Sequence

from ...document import Flow, Lane, Step
from ...words import quantities, sentences
from ...words.palette import INK
from .markup import EDGE, FAINT, GROUND, MISSING_INK, PHASE_COLOURS, SUNK, div, scrolled, table_row, tag, text


def flow_of(flow: Flow) -> str:
    """HTML of the stages of one compilation: each phase in a line, then a table."""
    if not flow.lanes:
        return div(sentences.NO_STAGE, f"color:{FAINT};font-size:13px", "flow")
    lines = []
    for phase, words in flow.lines:
        name = tag("b", f"{text(phase)}: ", f"color:{PHASE_COLOURS[phase]}") if phase else ""
        parts = (tag("b", text(word)) if number % 2 == 0 else text(word) for number, word in enumerate(words))
        lines.append(div(name + " → ".join(parts), "padding:2px 0", "way"))
    return div("".join(lines) + _table(flow.lanes), "margin:4px 0", "flow")


def _table(lanes: Sequence[Lane]) -> str:
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
