"""Timelines as SVG: spans of time in lanes, one below the other.

Self-contained, without ids, scripts or outside references, and deterministic. A bar's lane tells its kind, as does its
colour. Charts in one document share a time scale.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from compile_lens.layout.text import columns, one_line, shorten, width
from compile_lens.record.memory import Buffer, Memory

from ..words.characters import flat
from ..words.palette import COLOURS, DARK, LIGHT, Theme
from .sheet import fills, themed
from .svg import escape, px

WIDTH = 840.0
"""The document's width in pixels, that of a notebook cell in a window of 1280 pixels."""

_MARGIN, _ROW, _BAR, _LOW = 16.0, 25.0, 17.0, 13.0
_SMALL, _LABEL = 12.0, 11.0
_FONT = "ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace"
_LOOKS = {"part": "view", "ask": "control", "wait": "mutation", "work": "pointwise", "copy": "allocation"}
"""Kinds of nodes whose colours the bars use, by kind of bar."""

_FIGURES = (1.0, 2.0, 5.0)


@dataclass(frozen=True)
class Bar:
    """A span of time in seconds, with its kind (a key of ``_LOOKS``), a label shown if there is room, and a tooltip."""

    start: float
    seconds: float
    look: str
    label: str = ""
    about: str = ""

    @property
    def end(self) -> float:
        return self.start + self.seconds


@dataclass(frozen=True)
class Lane:
    name: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class Chart:
    """Lanes below a heading and sentences."""

    heading: str
    sentences: tuple[str, ...]
    lanes: tuple[Lane, ...]

    @property
    def seconds(self) -> float:
        return max((bar.end for lane in self.lanes for bar in lane.bars), default=0.0)


def to_svg(charts: Sequence[Chart], *, about: str, stamp: str) -> str:
    """Return the charts, one below the other. ``about`` is the alternative text; ``stamp``, below them, names their
    source."""
    names = [lane.name for chart in charts for lane in chart.lanes]
    left = _MARGIN + max((width(name, _SMALL) for name in names), default=0.0) + 10
    longest = max((chart.seconds for chart in charts), default=0.0) or 1.0
    scale = (WIDTH - _MARGIN - left) / longest
    parts: list[str] = []
    y = 4.0
    for chart in charts:
        drawn, y = _chart(chart, y, left, scale)
        parts += drawn
    drawn, y = _axis(longest, y, left, scale)
    parts += drawn
    y += 6
    for line in _wrap(stamp):
        y += 15
        parts.append(f'<text class="quiet" x="{px(_MARGIN)}" y="{px(y)}">{escape(line)}</text>')
    height = px(y + 12)
    title = escape(one_line("; ".join(chart.heading for chart in charts)))
    size = f'width="{px(WIDTH)}" height="{height}" viewBox="0 0 {px(WIDTH)} {height}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="lens-lanes" {size} role="img"'
            f' aria-label="{escape(one_line(f"{about} {stamp}"))}" font-family="{_FONT}">',
            f"<title>{title}</title>",
            f"<desc>{escape(one_line(f'{about} {stamp}'))}</desc>",
            f"<style>{_style()}</style>",
            '<rect class="paper" width="100%" height="100%" rx="8"/>',
            *parts,
            "</svg>\n",
        ]
    )


def _chart(chart: Chart, y: float, left: float, scale: float) -> tuple[list[str], float]:
    y += 24
    parts = [f'<text class="heading" x="{px(_MARGIN)}" y="{px(y)}">{escape(one_line(chart.heading))}</text>']
    for sentence in chart.sentences:
        for line in _wrap(sentence):
            y += 16
            parts.append(f'<text class="quiet" x="{px(_MARGIN)}" y="{px(y)}">{escape(line)}</text>')
    y += 9
    for lane in chart.lanes:
        name = escape(one_line(lane.name))
        parts.append(f'<text class="end" x="{px(left - 10)}" y="{px(y + 13)}">{name}</text>')
        rail = px(y + _BAR)
        parts.append(f'<path class="rail" d="M{px(left)} {rail}H{px(WIDTH - _MARGIN)}"/>')
        places = [(left + scale * bar.start, scale * bar.seconds) for bar in lane.bars]
        rooms = _rooms(places)
        parts += [_bar(bar, x, y, wide, room) for bar, (x, wide), room in zip(lane.bars, places, rooms)]
        y += _ROW
    return parts, y


def _rooms(places: Sequence[tuple[float, float]]) -> list[float]:
    """Return the space after each bar, up to the next one or the end of the lane."""
    starts = sorted(x for x, _ in places)
    ends = [x + wide for x, wide in places]
    return [next((x for x in starts if x >= end), WIDTH - _MARGIN) - end for end in ends]


def _bar(bar: Bar, x: float, y: float, across: float, room: float) -> str:
    # Even the shortest bar is drawn with a visible width.
    height = _LOW if bar.look == "copy" else _BAR
    top = y + _BAR - height
    box = f'x="{px(x)}" y="{px(top)}" width="{px(max(across, 1.2))}" height="{px(height)}"'
    about = f"<title>{escape(one_line(bar.about))}</title>" if bar.about else ""
    drawn = f'<rect class="{bar.look}" {box}>{about}</rect>'
    label = one_line(bar.label)
    wanted = width(label, _LABEL) + 1
    if label and bar.look == "part" and wanted > across:
        pointing = f"← {label}"  # the label refers to the bar on its left
        if width(pointing, _LABEL) + 9 <= room:
            at = f'x="{px(x + max(across, 1.2) + 4)}" y="{px(top + height / 2 + 4)}"'
            return f'{drawn}<text class="label beside" {at}>{escape(pointing)}</text>'
    if label and wanted > across and not any(map(str.isdigit, label)):
        begin = label[: int((across - 1) / width("x", _LABEL)) - 1]
        label = f"{begin}…" if len(begin) >= 3 and label.isascii() else ""
    if not label or width(label, _LABEL) + 1 > across:
        return drawn
    at = f'x="{px(x + across / 2)}" y="{px(top + height / 2 + 4)}"'
    return f'{drawn}<text class="label" {at}>{escape(label)}</text>'


def _axis(seconds: float, y: float, left: float, scale: float) -> tuple[list[str], float]:
    """Return the axis in round milliseconds, or in microseconds if all is shorter than 1 ms."""
    unit, name = (1e3, "ms") if seconds >= 1e-3 else (1e6, "µs")
    step = next(s for s in _steps() if s * scale / unit >= 64)
    parts = ['<g class="axis">']
    count = int(seconds * unit / step + 1e-9)
    for number in range(count + 1):
        x = px(left + scale * number * step / unit)
        text = f"{number * step:g}" + (f" {name}" if number == count else "")
        # The last label is right-aligned, so that its unit stays within the document.
        last = ' class="end"' if number == count and number else ""
        x_text = px(float(x) + (6 if last else 0))
        parts += [
            f'<path d="M{x} {px(y)}v4"/>',
            f'<text{last} x="{x_text}" y="{px(y + 15)}">{text}</text>',
        ]
    return [*parts, "</g>"], y + 16


def _steps() -> Iterator[float]:
    for power in range(-3, 9):
        yield from (figure * 10.0**power for figure in _FIGURES)


def _wrap(sentence: str) -> Iterable[str]:
    """Return a sentence in lines of at most the document's width; text without spaces, such as Chinese, breaks
    anywhere."""
    room = int((WIDTH - 2 * _MARGIN) / width("x", _SMALL))
    lines = [""]
    for word in one_line(sentence).split(" "):
        space = " " if lines[-1] else ""
        if columns(lines[-1] + space + word) <= room:
            lines[-1] += space + word
            continue
        if columns(word) <= room // 2:
            lines.append(word)
            continue
        lines[-1] += space
        for letter in word:
            if columns(lines[-1] + letter) > room and letter not in "，。；：、）":
                lines.append("")
            lines[-1] += letter
    return [shorten(line.rstrip(), room + 2) for line in lines]


def _style() -> str:
    base = (
        "text{white-space:pre;font-size:12px}.heading{font-size:14px;font-weight:600}"
        ".label,.axis text{text-anchor:middle}.label{font-size:11px;pointer-events:none}"
        ".label.beside{text-anchor:start}.end,.axis text.end{text-anchor:end}"
        ".rail,.axis path{fill:none;stroke-width:1}.wait{stroke-dasharray:3 2}"
        "rect{stroke-width:1}rect.paper{stroke:none}"
    )
    return themed("lens-lanes", base, _colours)


def _colours(theme: Theme, dark: bool) -> str:
    rules = (
        f".paper{{fill:{theme.paper}}}text{{fill:{theme.ink}}}.quiet,.axis text{{fill:{theme.quiet}}}"
        f".rail,.axis path{{stroke:{theme.edge}}}"
    )
    return rules + fills({f".{look}": COLOURS[kind] for look, kind in _LOOKS.items()}, dark)


MAX_BUFFERS = 40
"""Maximum number of buffers drawn, the largest ones."""

_WIDTH, _LEFT, _BUFFER_ROW, _HELD = 640, 150, 15, 46
_KINDS = {"input": "input", "intermediate": "pointwise", "output": "output", "saved": "reduction"}
"""Kind of node whose colour each kind of buffer uses."""


def timeline(memory: Memory, last: int) -> str:
    """Return the drawing; ``last`` is the last line of the module. ``""`` if no size is known."""
    sized = [b for b in memory.buffers if b.nbytes and not b.base]
    if not sized:
        return ""
    lines = [line for b in sized for line in (b.alloc_line, b.free_line) if line]
    first, end = min(lines, default=1) - 1, max([*lines, _end(last, lines)])
    largest = sorted(sized, key=lambda b: -(b.nbytes or 0))[:MAX_BUFFERS]
    shown = [b for b in sized if b in largest]
    scale = (_WIDTH - _LEFT - 8) / max(end - first, 1)

    def x(line: int, otherwise: int) -> float:
        return round(_LEFT + ((line or otherwise) - first) * scale, 1)

    height = _HELD + 12 + _BUFFER_ROW * len(shown) + (16 if len(shown) < len(sized) else 4)
    parts = [_curve(sized, first, end, x)]
    for number, buffer in enumerate(shown):
        parts.append(
            _buffer_bar(
                buffer,
                _HELD + 12 + _BUFFER_ROW * number,
                x(buffer.alloc_line, first),
                x(buffer.free_line, end),
            )
        )
    if len(shown) < len(sized):
        parts.append(f'<text x="{_LEFT}" y="{height - 4}">and {len(sized) - len(shown)} smaller ones</text>')
    size = f'viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>'
    return f"{head}<style>{_buffer_style()}</style>{''.join(parts)}</svg>"


def _end(last: int, lines: list[int]) -> int:
    """Return the last line drawn: the module's, if known."""
    return min(last, max(lines, default=0) + 4) if last else max(lines, default=1) + 1


def _curve(sized: list[Buffer], first: int, end: int, x: Callable[[int, int], float]) -> str:
    """Return the curve of live bytes at each line; reused memory counts once."""
    changes: dict[int, int] = {}
    taken = {b.reuses for b in sized if b.reuses}
    for b in sized:
        if not b.reuses:
            changes[b.alloc_line or first] = changes.get(b.alloc_line or first, 0) + (b.nbytes or 0)
        if b.name not in taken:
            changes[b.free_line or end] = changes.get(b.free_line or end, 0) - (b.nbytes or 0)
    held, points = 0, []
    steps: list[tuple[int, int]] = []
    for line in sorted(changes):
        held += changes[line]
        steps.append((line, held))
    most = max((value for _, value in steps), default=0) or 1
    y: float = _HELD
    for line, value in steps:
        at = x(line, first)
        points.append(f"{at},{y}")
        y = round(_HELD - 34 * value / most, 1)
        points.append(f"{at},{y}")
    points.append(f"{x(end, end)},{y}")
    area = f"{x(first, first)},{_HELD} {' '.join(points)} {x(end, end)},{_HELD}"
    label = f'<text x="{_LEFT - 6}" y="{_HELD - 14}" class="end">live at once</text>'
    axis = f'<text x="{_LEFT}" y="10">line {first + 1}</text><text x="{_WIDTH - 8}" y="10" class="end">{end}</text>'
    return f'<polygon class="held" points="{area}"/>{label}{axis}'


def _buffer_bar(buffer: Buffer, y: float, left: float, right: float) -> str:
    kind = _KINDS.get(buffer.kind, "other")
    name = html.escape(flat(buffer.name if len(buffer.name) < 22 else buffer.name[:20] + "…"))
    label = html.escape(flat(f"{buffer.name}, {buffer.kind}, {buffer.nbytes or 0:,} bytes"))
    note = f"takes over {buffer.reuses}" if buffer.reuses else "donated" if buffer.donated else ""
    inside = html.escape(flat(note[:40]))
    return (
        f'<text x="{_LEFT - 6}" y="{y + 9}" class="end">{name}</text>'
        f'<rect class="{kind}" x="{left}" y="{y}" width="{max(round(right - left, 1), 2)}" height="11" rx="2">'
        f"<title>{label}</title></rect>"
        + (f'<text x="{left + 5}" y="{y + 9}">{inside}</text>' if inside else "")
    )


def _buffer_style() -> str:
    kinds = (*dict.fromkeys(_KINDS.values()), "other")
    light = "".join(f".{k}{{fill:{COLOURS[k].fill};stroke:{COLOURS[k].line}}}" for k in kinds)
    dark = "".join(f".{k}{{fill:{COLOURS[k].dark_fill};stroke:{COLOURS[k].dark_line}}}" for k in kinds)
    return (
        f"text{{font:10px sans-serif;fill:{LIGHT.quiet}}}.end{{text-anchor:end}}.held{{fill:{LIGHT.edge};opacity:.45}}"
        f"{light}@media(prefers-color-scheme:dark){{text{{fill:{DARK.quiet}}}.held{{fill:{DARK.edge}}}{dark}}}"
    )
