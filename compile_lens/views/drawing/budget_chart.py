"""Peak memory by ``activation_memory_budget`` as SVG: of each phase, and the larger of both."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from compile_lens.record.memory_curve import MemoryCurveRecord, MemoryPoint

from ..words.palette import Theme
from ..words.quantities import memory_in_short
from .sheet import themed

WIDTH, HEIGHT = 344, 206
"""Size in pixels: it fits on a phone without scaling."""

_LEFT, _RIGHT, _TOP, _BOTTOM = 62.0, 332.0, 30.0, 170.0
_LETTERS = 26.0
"""Minimum pixels between the labels of two budgets."""

_STEPS = (1, 2, 2.5, 5, 10)


def budget_chart(curve: MemoryCurveRecord) -> str:
    """Return the drawing; ``""`` if less than two peaks are known."""
    known = [point for point in curve.points if point.peak is not None]
    if len(known) < 2:
        return ""
    step = _step(max(point.peak or 0 for point in known))
    most = step * -(-max(point.peak or 0 for point in known) // step)

    def y(nbytes: int) -> float:
        return round(_BOTTOM - (_BOTTOM - _TOP) * nbytes / most, 1)

    parts = [_grid(round(line * step), y) for line in range(round(most / step) + 1)]
    parts += _budgets(curve)
    for name, value in (
        ("forward", lambda point: point.forward),
        ("backward", lambda point: point.backward),
        ("peak", lambda point: point.peak),
    ):
        parts += [_line(name, run, value, y) for run in _runs(curve, value)]
    for point in known:
        look, radius = ("best", 5) if point is curve.best else ("dot", 3.5)
        place = f'cx="{across(point.budget)}" cy="{y(point.peak or 0)}"'
        parts.append(f'<circle class="{look}" {place} r="{radius}"/>')
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" class="lens-budget" {size}><style>{_style()}</style>'
    return f"{head}{_legend()}{''.join(parts)}</svg>"


def across(budget: float) -> float:
    """Return the position of a budget in pixels from the left."""
    return round(_LEFT + 8 + (_RIGHT - _LEFT - 16) * budget, 1)


def _step(most: int) -> float:
    """Return the bytes between two grid lines, for three to five lines at round values of KiB, MiB or GiB."""
    unit = 1.0
    while most / unit >= 1024:
        unit *= 1024
    while most / unit < 4 and unit > 1:
        unit /= 10
    tens = unit
    while True:
        for figure in _STEPS:
            if most / (tens * figure) <= 4:
                return tens * figure
        tens *= 10


def _grid(nbytes: int, y: Callable[[int], float]) -> str:
    label = memory_in_short(nbytes) if nbytes else "0"
    at = y(nbytes)
    line = f'<path class="grid" d="M{_LEFT} {at}H{_RIGHT}"/>'
    return f'{line}<text class="end" x="{_LEFT - 6}" y="{at + 4}">{label}</text>'


def _budgets(curve: MemoryCurveRecord) -> Iterator[str]:
    last = -_LETTERS
    for budget in sorted(point.budget for point in curve.points):
        if across(budget) - last >= _LETTERS:
            last = across(budget)
            yield f'<text class="middle" x="{last}" y="{_BOTTOM + 16}">{budget:g}</text>'
    middle = (_LEFT + _RIGHT) / 2
    yield f'<text class="middle" x="{middle}" y="{HEIGHT - 4}">activation_memory_budget: 1 is the default</text>'


Value = Callable[[MemoryPoint], "int | None"]


def _runs(curve: MemoryCurveRecord, value: Value) -> Iterator[list[MemoryPoint]]:
    """Yield runs of consecutive points with known values: no line crosses an unknown value."""
    run: list[MemoryPoint] = []
    for point in curve.points:
        if value(point) is not None:
            run.append(point)
        elif run:
            yield run
            run = []
    if run:
        yield run


def _line(name: str, run: list[MemoryPoint], value: Value, y: Callable[[int], float]) -> str:
    points = " ".join(f"{across(point.budget)},{y(value(point) or 0)}" for point in run)
    return f'<polyline class="{name}" points="{points}"/>'


def _legend() -> str:
    parts, x = [], 4.0
    for name, words in (("peak", "peak: the larger"), ("forward", "forward"), ("backward", "backward")):
        parts.append(f'<path class="{name}" d="M{x} 10H{x + 20}"/><text x="{x + 25}" y="14">{words}</text>')
        x += 25 + 6.6 * len(words) + 14
    return "".join(parts)


def _style() -> str:
    base = (
        "text{font:12px sans-serif}.end{text-anchor:end}.middle{text-anchor:middle}.grid{stroke-width:1}"
        ".peak,.forward,.backward{fill:none;stroke-width:1.4}.peak{stroke-width:2.4}"
        ".forward{stroke-dasharray:6 3}.backward{stroke-dasharray:2 3}.dot,.best{stroke-width:2}"
    )
    return themed("lens-budget", base, _colours)


def _colours(theme: Theme, dark: bool) -> str:
    del dark
    return (
        f"text{{fill:{theme.ink}}}.grid{{stroke:{theme.edge};opacity:.4}}.peak{{stroke:{theme.ink}}}"
        f".forward,.backward{{stroke:{theme.label}}}.dot{{fill:{theme.paper};stroke:{theme.ink}}}"
        f".best{{fill:{theme.saved};stroke:{theme.saved}}}"
    )
