"""Compile time as an icicle chart in SVG: nested events, with widths proportional to time."""

from __future__ import annotations

import html
from collections.abc import Iterable

from compile_lens.measures.compile_time import AOT, BACKEND, BUILDING, DYNAMO, INDUCTOR, own_times
from compile_lens.record.program import CompileEvent, ProgramRecord

from ..words.characters import flat
from ..words.palette import COLOURS, DARK, LIGHT
from ..words.quantities import duration
from .sheet import fills

MAX_PARTS = 1_500
"""Maximum parts drawn: the longest ones."""

_WIDTH, _ROW, _TOP, _GAP = 1180, 17, 30, 22
_MIN_WIDTH = 0.4
_LETTER = 6.0
KINDS = {DYNAMO: "pointwise", AOT: "reduction", INDUCTOR: "symbol", BUILDING: "matmul", BACKEND: "other"}
"""The node kinds whose colours parts of the compiler have."""


def icicle(program: ProgramRecord) -> str:
    """Return the drawing; ``""`` if no event took time. Time without compilation is omitted."""
    parts = [(event, part) for event, part, _ in own_times(program)]
    if not parts:
        return ""
    places = _Axis(event for event, _ in parts)
    wide = [one for one in parts if places.width(one[0]) >= _MIN_WIDTH]
    drawn = sorted(wide, key=lambda one: -one[0].duration)[:MAX_PARTS]
    top, bands = _TOP, []
    for thread in sorted({event.thread for event, _ in drawn}):
        own = [one for one in drawn if one[0].thread == thread]
        rows = {depth: row for row, depth in enumerate(sorted({event.depth for event, _ in own}))}
        bands.append(f'<text class="quiet" x="2" y="{top - 4}">thread {thread}</text>')
        own.sort(key=lambda one: (one[0].start, one[0].depth))
        bands += [_box(event, part, places, top + _ROW * rows[event.depth]) for event, part in own]
        top += _ROW * len(rows) + _GAP
    left = len(parts) - len(drawn)
    if left:
        bands.append(f'<text class="quiet" x="2" y="{top - 6}">{left:,} shorter parts are not drawn</text>')
        top += 12
    size = f'viewBox="0 0 {_WIDTH} {top}" width="{_WIDTH}" height="{top}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{_style()}</style>'
    return f"{head}{_legend()}{''.join(bands)}</svg>"


class _Axis:
    """Maps times to horizontal positions, without the time between compilations."""

    def __init__(self, events: Iterable[CompileEvent]) -> None:
        self._spans: list[tuple[float, float, float]] = []  # start, end, and total duration before
        before = 0.0
        for start, end in sorted((e.start, e.start + e.duration) for e in events):
            if self._spans and start <= self._spans[-1][1]:
                first, last, passed = self._spans[-1]
                before += max(end - last, 0.0)
                self._spans[-1] = (first, max(end, last), passed)
            else:
                self._spans.append((start, end, before))
                before += end - start
        self._scale = (_WIDTH - 4) / (before or 1.0)

    def __call__(self, time: float) -> float:
        low, high = 0, len(self._spans) - 1
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._spans[middle][0] <= time else (low, middle - 1)
        start, end, before = self._spans[low]
        return 2 + (before + min(max(time, start), end) - start) * self._scale

    def width(self, event: CompileEvent) -> float:
        """Return the width of an event in the drawing."""
        return event.duration * self._scale


def _box(event: CompileEvent, part: str, places: _Axis, y: float) -> str:
    x, width = round(places(event.start), 1), round(places.width(event), 1)
    name = f"{event.id} {event.name}" if event.depth == 0 and event.id else event.name
    room = int((width - 6) / _LETTER)
    took = f"{name} {duration(event.duration / 1e6)}"
    inside = (
        took
        if len(took) <= room
        else name
        if len(name) <= room
        else f"{name[: room - 1]}…"
        if room > 3
        else ""
    )
    label = f'<text x="{x + 3}" y="{y + 12}">{html.escape(flat(inside))}</text>' if inside else ""
    title = html.escape(flat(f"{event.id} {event.name}, {part}, {duration(event.duration / 1e6)}".strip()))
    box = f'x="{x}" y="{y}" width="{max(width, 0.5)}" height="{_ROW - 1}"'
    return f'<rect class="{KINDS[part]}" {box}><title>{title}</title></rect>{label}'


def _legend() -> str:
    parts, x = [], 2.0
    for name, kind in KINDS.items():
        parts.append(f'<rect class="{kind}" x="{x}" y="2" width="10" height="10"/>')
        parts.append(f'<text class="quiet" x="{x + 14}" y="11">{name}</text>')
        x += 14 + _LETTER * len(name) + 18
    return "".join(parts)


def _style() -> str:
    kinds = {f".{kind}": COLOURS[kind] for kind in KINDS.values()}
    light, dark = fills(kinds, False), fills(kinds, True)
    return (
        f"text{{font:10px sans-serif;fill:{LIGHT.ink}}}.quiet{{fill:{LIGHT.quiet}}}rect{{stroke-width:.4}}{light}"
        f"@media(prefers-color-scheme:dark){{text{{fill:{DARK.ink}}}.quiet{{fill:{DARK.quiet}}}{dark}}}"
    )
