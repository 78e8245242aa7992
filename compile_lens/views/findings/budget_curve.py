"""Sections on memory by ``activation_memory_budget``: a chart, a row for each budget, and the best budget."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from compile_lens.measures.address import line_address
from compile_lens.record.graph import Frame
from compile_lens.record.memory_curve import DEFAULT, MemoryCurveRecord, MemoryPoint
from compile_lens.record.messages import first_names

from ..document import NUMBER, Picture, Prose, Row, Section, Spot, Table, quantity
from ..drawing.budget_chart import WIDTH, across, budget_chart
from ..words.labels import place
from ..words.quantities import plural
from .places import bytes_cell, in_memory, memory_cell, size

HEAD = ("budget", "saved", "peak", "forward", "backward", "moved", "launches", "computed again")
DEFINITIONS = (
    "bytes saved for the backward besides inputs and results",
    "bytes live at once, at most: the larger of forward and backward",
    "bytes live at the peak of the forward",
    "bytes live at the peak of the backward",
    "bytes moved by the kernels of forward and backward",
    "launches of forward and backward",
    "operators of the forward that the backward computes again",
)
NOT_ASKED = (
    "How the peak changes with activation_memory_budget was not captured: capture.memory_curve() captures the call "
    "once for each budget and adds the curve here, show(…, memory_curve=True) does it at once."
)
CALLS = 3
"""Maximum calls named at one point of the chart."""


def curve_sections(curve: MemoryCurveRecord) -> list[Section]:
    """Return the sections of a curve, the chart first."""
    words = (
        "1 is torch's default: the partitioner saves freely. 0 saves only inputs and computes the rest again.",
        f"Each row is a capture{f' for {curve.target}' if curve.target else ''}. Bytes are modelled.",
    )
    rows = tuple(map(_row, curve.points))
    table = Table("by budget", HEAD, (NUMBER,) * len(HEAD), rows, words, definitions=DEFINITIONS)
    sections: list[Section] = [table]
    if svg := budget_chart(curve):
        sections.insert(0, Picture("peak by budget", svg, headline(curve), tuple(_spots(curve))))
    again = tuple(
        f"{point.budget:g}: {first_names(dict.fromkeys(map(_call, point.lines)), 4)}"
        for point in curve.points
        if point.lines
    )
    if again:
        sections.append(Prose("computed again in the backward", again))
    if rises := tuple(_rises(curve)):
        sections.append(Prose("where less budget does not help", rises))
    if failures := tuple(f"{point.budget:g}: {point.failure}" for point in curve.points if point.failure):
        sections.append(Prose("not captured", failures))
    return sections


def headline(curve: MemoryCurveRecord) -> str:
    """Return a sentence on the budget with the lowest peak, and its cost."""
    best, default = curve.best, curve.default
    if best is None:
        return "The peak is not known with any of these budgets."
    if default is None or default.peak is None:
        return f"Lowest peak at {best.budget:g}: {in_memory(best.peak)}. The default, 1, was not captured."
    if best.budget == DEFAULT:
        return f"No budget has a lower peak than the default: {in_memory(default.peak)}."
    moved = ""
    if best.moved is not None and default.moved is not None:
        moved = (
            f", bytes moved {size(default.moved)} → {size(best.moved)}{_change(default.moved, best.moved)}"
        )
    peak = f"{in_memory(default.peak)} → {in_memory(best.peak)}{_change(default.peak, best.peak or 0)}"
    return f"Lowest peak at {best.budget:g}: {peak}{moved}. Not timed."


def gain(curve: MemoryCurveRecord) -> float:
    """Return the share of the default's peak that the best budget saves; 0 if either is unknown."""
    best, default = curve.best, curve.default
    if best is None or best.peak is None or default is None or not default.peak:
        return 0.0
    return 1 - best.peak / default.peak


def advice(curve: MemoryCurveRecord) -> str:
    """Return what to try in a few words; the headline if no budget is known to lower the default's peak."""
    best, default = curve.best, curve.default
    if best is None or best.budget == DEFAULT or default is None or default.peak is None or best.peak is None:
        return headline(curve)
    moved = ""
    if best.moved is not None and default.moved:
        moved = f", bytes moved{_change(default.moved, best.moved)}"
    peak = _change(default.peak, best.peak)
    return f"to try: activation_memory_budget = {best.budget:g}: peak{peak}{moved}; not timed"


def _change(before: int, after: int) -> str:
    return f" ({100 * (after / before - 1):+.0f} %)" if before else ""


def _row(point: MemoryPoint) -> Row:
    return Row(
        (
            f"{point.budget:g}",
            memory_cell(point.saved),
            memory_cell(point.peak),
            memory_cell(point.forward),
            memory_cell(point.backward),
            bytes_cell(point.moved),
            quantity(point.launches),
            quantity(point.recomputed),
        )
    )


def _spots(curve: MemoryCurveRecord) -> Iterator[Spot]:
    """Yield the part of the chart around each budget, ascending, halfway to its neighbours."""
    points = sorted(curve.points, key=lambda point: point.budget)
    middles = [(across(a.budget) + across(b.budget)) / 2 for a, b in pairwise(points)]
    ends = [2 * across(points[0].budget) - middles[0], *middles, 2 * across(points[-1].budget) - middles[-1]]
    for point, start, end in zip(points, ends, ends[1:]):
        lines = dict.fromkeys(line_address(frame.file, frame.line) for frame in point.lines)
        yield Spot(start / WIDTH, end / WIDTH, _words(point), tuple(lines), point is curve.best)


def _words(point: MemoryPoint) -> str:
    if point.failure:
        return f"{point.budget:g}: not captured: {point.failure}"
    again = ""
    if point.recomputed is not None:
        calls = first_names(dict.fromkeys(map(_call, point.lines)), CALLS)
        again = f"; {plural(point.recomputed, 'operator')} computed again{f': {calls}' if calls else ''}"
    return (
        f"{point.budget:g}: peak {in_memory(point.peak)}, forward {in_memory(point.forward)}, "
        f"backward {in_memory(point.backward)}; {in_memory(point.saved)} saved, {size(point.moved)} moved{again}"
    )


def _call(frame: Frame) -> str:
    return f"{place(frame)} {frame.expression}"


def _rises(curve: MemoryCurveRecord) -> Iterator[str]:
    before = {b: a for a, b in zip(curve.points, curve.points[1:])}
    for point in curve.rises:
        other = before[point]
        side = "backward" if (point.backward or 0) > (point.forward or 0) else "forward"
        yield (
            f"{point.budget:g} has a higher peak than {other.budget:g}: {in_memory(point.peak)}, "
            f"not {in_memory(other.peak)}; the {side} is the larger."
        )
