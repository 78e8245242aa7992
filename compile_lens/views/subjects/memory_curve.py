"""The Document of a memory curve: a row for each budget, and the budget with the lowest peak."""

from __future__ import annotations

from collections.abc import Iterator

from compile_lens.record.graph import Frame
from compile_lens.record.memory_curve import DEFAULT, MemoryCurveRecord, MemoryPoint
from compile_lens.record.messages import first_names

from ..document import (
    NUMBER,
    Block,
    Cell,
    Document,
    Entries,
    Entry,
    Finding,
    Prose,
    Row,
    Section,
    Table,
)
from ..findings.places import bytes_cell, held, memory_cell, size
from ..words.labels import place
from ..words.quantities import plural

HEAD = ("budget", "saved", "peak", "forward", "backward", "moved", "launches", "computed again")
DEFINITIONS = (
    "bytes saved for the backward beside inputs and results",
    "bytes live at once, at most: the larger of forward and backward",
    "bytes live at the peak of the forward",
    "bytes live at the peak of the backward",
    "bytes moved by the kernels of forward and backward",
    "launches of forward and backward",
    "operators of the forward that the backward computes again",
)
GREEN = 0.2
"""Share of the peak from which less of it is good news."""


def document(curve: MemoryCurveRecord) -> Document:
    """The Document of a memory curve."""
    rows = tuple(_row(point) for point in curve.points)
    kinds = (NUMBER,) * len(HEAD)
    words = (
        "1 is torch's default: it saves as the partitioner likes. 0 saves inputs alone and computes the rest again.",
        f"Each row is a capture{f' for {curve.target}' if curve.target else ''}. Bytes are modelled.",
    )
    sections: list[Section] = [Table("by budget", HEAD, kinds, rows, words, definitions=DEFINITIONS)]
    again = tuple(
        f"{point.budget:g}: {first_names(dict.fromkeys(map(_call, point.lines)), 4)}"
        for point in curve.points
        if point.lines
    )
    if again:
        sections.append(Prose("computed again in the backward", again))
    rises = list(_rises(curve))
    if rises:
        sections.append(Prose("where less budget does not help", tuple(rises)))
    best = curve.best
    if best is not None and best.budget != DEFAULT and curve.default is not None:
        code = f"import torch._functorch.config as config\nconfig.activation_memory_budget = {best.budget:g}"
        entry = Entry(f"activation_memory_budget = {best.budget:g}", code=Block("", code, "python"))
        sections.append(Entries((entry,), "budget", ".best"))
    failures = tuple(f"{point.budget:g}: {point.failure}" for point in curve.points if point.failure)
    if failures:
        sections.append(Prose("not captured", failures))
    finding = Finding(
        "curve", "Memory by budget", "", plural(len(rows), "budget"), sections=tuple(sections), few=30
    )
    return Document(
        "memory_curve",
        f"memory of {curve.function} by activation_memory_budget",
        "compiled" if _gain(curve) >= GREEN else "partial",
        headline(curve),
        findings=(finding,),
    )


def _gain(curve: MemoryCurveRecord) -> float:
    """The share of the default's peak that the best budget takes away; 0 if one is not known."""
    best, default = curve.best, curve.default
    if best is None or best.peak is None or default is None or not default.peak:
        return 0.0
    return 1 - best.peak / default.peak


def headline(curve: MemoryCurveRecord) -> str:
    """The budget with the lowest peak, and what it costs."""
    best, default = curve.best, curve.default
    if best is None:
        return "The peak is not known with any of these budgets."
    if default is None or default.peak is None:
        return f"Lowest peak at {best.budget:g}: {held(best.peak)}. The default, 1, was not captured."
    if best.budget == DEFAULT:
        return f"No budget has a lower peak than the default: {held(default.peak)}."
    moved = ""
    if best.moved is not None and default.moved is not None:
        moved = (
            f", bytes moved {size(default.moved)} → {size(best.moved)}{_change(default.moved, best.moved)}"
        )
    peak = f"{held(default.peak)} → {held(best.peak)}{_change(default.peak, best.peak or 0)}"
    return f"Lowest peak at {best.budget:g}: {peak}{moved}. Not timed."


def _change(before: int, after: int) -> str:
    return f" ({100 * (after / before - 1):+.0f} %)" if before else ""


def _row(point: MemoryPoint) -> Row:
    launches: Cell = f"{point.launches:,}" if point.launches is not None else "—"
    return Row(
        (
            f"{point.budget:g}",
            memory_cell(point.saved),
            memory_cell(point.peak),
            memory_cell(point.forward),
            memory_cell(point.backward),
            bytes_cell(point.moved),
            launches,
            "—" if point.recomputed is None else f"{point.recomputed:,}",
        )
    )


def _call(frame: Frame) -> str:
    return f"{place(frame)} {(frame.call or frame.text).strip()}"


def _rises(curve: MemoryCurveRecord) -> Iterator[str]:
    before = {b: a for a, b in zip(curve.points, curve.points[1:])}
    for point in curve.rises:
        other = before[point]
        side = "backward" if (point.backward or 0) > (point.forward or 0) else "forward"
        yield (
            f"{point.budget:g} has a higher peak than {other.budget:g}: {held(point.peak)}, not {held(other.peak)}; "
            f"the {side} is the larger."
        )
