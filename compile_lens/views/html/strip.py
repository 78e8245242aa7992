"""The stage strip: every form that a function takes, left to right, one lane for each phase."""

from __future__ import annotations

from compile_lens.record.capture import Record
from compile_lens.record.compilation import Compilation

from ..words import outline, sentences
from .markup import EDGE, FAINT, GROUND, PHASE_COLOURS, SANS, SUNK, div, tag, text

_MISSING_INK = "#7a4b00"


def strip(capture: Record, compilation: Compilation) -> str:
    """HTML of the stages of one compilation: what each holds, how long it took, or why it was not seen."""
    lanes = outline.lanes(capture, compilation)
    if not lanes:
        return div(sentences.NO_STAGE, f"color:{FAINT};font-size:13px", "strip")
    rows = []
    for lane in lanes:
        colour = PHASE_COLOURS[lane.phase]
        label = div(
            text(lane.phase or "capture"),
            f"flex:0 0 72px;font-size:12px;font-weight:600;color:{colour};padding-top:9px;text-align:right",
            "lane-name",
        )
        arrow = div("→", f"color:{FAINT};padding-top:8px")
        cards = arrow.join(_card(step, colour) for step in lane.steps)
        flow = div(cards, "display:flex;flex-wrap:wrap;gap:6px;flex:1 1 0;font-size:12px;line-height:1.35")
        rows.append(
            div(
                label + flow,
                "display:flex;gap:12px;margin:0 0 8px 0",
                f"lane cl-lane-{lane.phase or 'shared'}",
            )
        )
    return div("".join(rows), f"{SANS};margin:4px 0", "strip")


def _card(step: outline.Step, colour: str) -> str:
    name = "ATen" if step.key in PHASE_COLOURS and step.key else step.title
    head = tag("b", text(name), "font-size:13px")
    time = outline.duration(step.seconds)
    look = "padding:5px 10px;border-radius:6px;min-width:70px"
    if step.none:
        why = div(text(_short(step.none)), f"color:{FAINT};max-width:190px;overflow-wrap:break-word")
        said = div("none", f"color:{FAINT}")
        return div(head + said + why, f"{look};border:1px solid {EDGE}", "stage-card cl-none")
    if step.missing:
        why = div(
            text(_short(step.missing)),
            f"color:{_MISSING_INK};max-width:190px;overflow-wrap:break-word",
        )
        said = div("not seen", f"font-weight:600;color:{_MISSING_INK}")
        return div(
            head + said + why, f"{look};background:#fff6df;border:1px dashed #b8860b", "stage-card cl-missing"
        )
    facts = "".join(
        div(tag("b", text(count)) + " " + text(what))
        for count, _, what in (fact.partition(" ") for fact in step.facts)
    )
    facts += div(text(time), f"color:{FAINT}") if time else ""
    ground = GROUND if step.stage is not None and step.key.rpartition(".")[2] != "code" else SUNK
    edge = f"border:1px solid {EDGE};border-top:3px solid {colour}"
    return div(head + facts, f"{look};background:{ground};{edge}", "stage-card")


def _short(reason: str) -> str:
    return reason if len(reason) <= 160 else reason[:159] + "…"
