"""Roofline as SVG: kernels by arithmetic intensity, under the roof of a device.

Self-contained, without ids, scripts or outside references, and deterministic. A kernel with a modelled time is *on* the
roof, since the model is the minimum time; measured kernels are below.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from compile_lens.layout.text import columns, one_line, shorten
from compile_lens.measures.roofline import COMPUTE, MEMORY, Bound, Roofline, roof

from ..words.palette import COLOURS, Theme
from ..words.quantities import ranges
from .sheet import fills, themed
from .svg import escape, px

WIDTH, HEIGHT = 640.0, 250.0
"""The document's width, and the height of the plot, in pixels."""

_LEFT, _RIGHT, _ROW = 96.0, 30.0, 14.0
_FONT = "ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace"
_ROOM = 92
"""Maximum characters of a line of text in the document."""


def to_svg(roofline: Roofline, *, title: str = "") -> str:
    """Return ``roofline`` as an SVG document with the heading ``title``."""
    return _Plot(roofline, shorten(one_line(title), 200) or "Roofline").document()


class _Plot:
    def __init__(self, roofline: Roofline, title: str) -> None:
        self.roofline = roofline
        self.title = title
        self.speed = roofline.speed
        self.drawn = [(i, b) for i, b in enumerate(roofline.bounds, 1) if b.kernel.intensity]
        self.runs = [r for r in roofline.runs if r.intensity and r.rate]
        marks = [b.kernel.intensity or 0.0 for _, b in self.drawn] + [r.intensity or 0.0 for r in self.runs]
        if roofline.ridge is not None:
            marks.append(roofline.ridge)
        self.low, self.high = _decades(marks)
        if self.speed is not None:
            rates = [
                self._roof(10.0**self.low),
                self.roofline.rate or 0.0,
                *(r.rate or 0.0 for r in self.runs),
            ]
            self.bottom, self.top = _decades(rates, least=1)

    def document(self) -> str:
        head, y = self._head()
        plot, y = self._plot(y)
        listed, y = self._list(y)
        height = px(y + 14)
        size = f'width="{px(WIDTH)}" height="{height}" viewBox="0 0 {px(WIDTH)} {height}"'
        about = self._about()
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" class="lens-roofline" {size} role="img"'
                f' aria-label="{escape(f"{self.title}: {about}")}" font-family="{_FONT}">',
                f"<title>{escape(self.title)}</title>",
                f"<desc>{escape(about)}</desc>",
                f"<style>{_style()}</style>",
                '<rect class="paper" width="100%" height="100%" rx="8"/>',
                *head,
                *plot,
                *listed,
                "</svg>\n",
            ]
        )

    def _about(self) -> str:
        of = {name: sum(b.bound == name for b in self.roofline.bounds) for name in (MEMORY, COMPUTE)}
        unknown = len(self.roofline.bounds) - sum(of.values())
        parts = [f"{number} {name}-bound" for name, number in of.items() if number]
        parts += [f"{unknown} without a verdict"] if unknown else []
        count = len(self.roofline.bounds)
        kernels = f"{count} {'kernel' if count == 1 else 'kernels'}"
        return f"{shorten(one_line(roof(self.roofline)), 300)} {kernels}: {', '.join(parts) or 'nothing to say'}."

    def _head(self) -> tuple[list[str], float]:
        y = 30.0
        parts = [f'<text class="heading" x="16" y="{px(y)}">{escape(shorten(self.title, 70))}</text>']
        sentences = [shorten(one_line(roof(self.roofline)), 4 * _ROOM)]
        if self.speed is not None:
            sentences.append("Kernels are modelled: each stands on the roof, at its least time.")
            if any(
                b.rate is not None and b.rate < 0.99 * self._roof(b.kernel.intensity or 0.0)
                for _, b in self.drawn
            ):
                sentences.append("Below it stands arithmetic that is slower than products.")
        if self.runs:
            sentences.append("Diamonds are whole runs, measured.")
        idle = sum(b.kernel.flops == 0 for b in self.roofline.bounds)
        if idle:
            number = f"{idle} kernels do" if idle > 1 else "1 kernel does"
            sentences.append(f"{number} no arithmetic and cannot stand on this scale.")
        for line in _wrap(sentences):
            y += 15
            parts.append(f'<text class="quiet" x="16" y="{px(y)}">{escape(line)}</text>')
        return parts, y + 16

    def _plot(self, top: float) -> tuple[list[str], float]:
        if not self.drawn and self.speed is None:
            return [], top
        height = HEIGHT if self.speed is not None else 0.0
        self._top, self._base = top, top + height
        parts = ['<g class="grid">']
        for power in range(self.low, self.high + 1):
            x = px(self._x(10.0**power))
            parts.append(f'<path d="M{x} {px(self._top)}V{px(self._base + 4)}"/>')
            parts.append(f'<text x="{x}" y="{px(self._base + 16)}">{_power(power)}</text>')
        if self.speed is not None:
            for power in range(self.bottom, self.top + 1):
                y = self._y(10.0**power)
                parts.append(f'<path d="M{px(_LEFT)} {px(y)}H{px(WIDTH - _RIGHT)}"/>')
                parts.append(f'<text class="end" x="{px(_LEFT - 6)}" y="{px(y + 4)}">{_rate(power)}</text>')
        parts.append(f'<path d="M{px(_LEFT)} {px(self._base)}H{px(WIDTH - _RIGHT)}"/></g>')
        if self.speed is not None:
            parts += self._roof_line()
        parts += self._dots()
        lane, y = self._lane(self._base + 32)
        middle = px((_LEFT + WIDTH - _RIGHT) / 2)
        parts += lane
        parts.append(
            f'<text class="quiet mid" x="{middle}" y="{px(y)}">operations for each byte moved (numbers: kernels)</text>'
        )
        return parts, y + 20

    def _roof_line(self) -> list[str]:
        assert self.speed is not None and self.roofline.ridge is not None
        left, ridge, right = 10.0**self.low, self.roofline.ridge, 10.0**self.high
        points = " ".join(f"{px(self._x(x))},{px(self._y(self._roof(x)))}" for x in (left, ridge, right))
        basis = "measured" if self.speed.measured else "published peak"
        label = escape(f"{shorten(one_line(self.speed.dtype), 20)}, {basis}")
        flat, slope = self._y(self.roofline.rate or 0.0) - 6, self._x(ridge)
        return [
            f'<polyline class="roof" points="{points}"/>',
            f'<text class="quiet end" x="{px(WIDTH - _RIGHT)}" y="{px(flat)}">{label}</text>',
            f'<path class="ridge" d="M{px(slope)} {px(self._y(self.roofline.rate or 0.0))}V{px(self._base)}"/>',
        ]

    def _dots(self) -> list[str]:
        parts: list[str] = []
        seen: set[str] = set()
        for _, bound in self.drawn:
            if bound.rate is None:
                continue
            x, y = self._x(bound.kernel.intensity or 1.0), self._y(bound.rate)
            # The shape repeats the colour's meaning: a circle is memory-bound, a square compute-bound.
            if bound.bound == MEMORY:
                mark = f'<circle class="memory" cx="{px(x)}" cy="{px(y)}" r="4.5"/>'
            else:
                mark = f'<rect class="compute" x="{px(x - 4)}" y="{px(y - 4)}" width="8" height="8"/>'
            if mark not in seen:
                seen.add(mark)
                parts.append(mark)
        for run in self.runs:
            x, y = self._x(run.intensity or 1.0), self._y(run.rate or 1.0)
            name = escape(f"{run.name} {run.phases}")
            parts.append(
                f'<path class="run" d="M{px(x)} {px(y - 6)}l6 6l-6 6l-6 -6z"><title>{name}</title></path>'
            )
            parts.append(f'<text class="quiet" x="{px(x + 9)}" y="{px(y + 4)}">{name}</text>')
        return parts

    def _lane(self, y: float) -> tuple[list[str], float]:
        """Return the kernels' numbers below the axis; equal positions are merged, close ones stacked."""
        places: list[list[tuple[float, int]]] = []
        for number, bound in sorted(self.drawn, key=lambda d: (d[1].kernel.intensity or 0.0, d[0])):
            x = self._x(bound.kernel.intensity or 1.0)
            if places and x - places[-1][0][0] < 12:
                places[-1].append((x, number))
            else:
                places.append([(x, number)])
        ends: list[float] = []
        parts = []
        for place in places:
            x = sum(x for x, _ in place) / len(place)
            text = shorten(_numbers(number for _, number in place), 40)
            half = 3.4 * len(text) + 4
            centre = min(max(x, 8 + half), WIDTH - 8 - half)
            row = next((i for i, end in enumerate(ends) if end <= centre - half), len(ends))
            ends[row:] = [centre + half, *ends[row + 1 :]]
            parts.append(f'<text x="{px(centre)}" y="{px(y + row * 13)}">{text}</text>')
        group = [f'<g class="numbers">{"".join(parts)}</g>'] if parts else []
        return group, y + 13 * max(len(ends), 1) + 6

    def _list(self, y: float) -> tuple[list[str], float]:
        bounds = self.roofline.bounds
        if not bounds:
            return [], y
        many = len({b.kernel.phase for b in bounds} | {b.kernel.compilation for b in bounds}) > 1
        rows = [("", "kernel", "bound", "op/byte")]
        rows += [(str(i), _name(b, many), b.bound or "?", _intensity(b)) for i, b in enumerate(bounds, 1)]
        parts = ['<g class="list">']
        for number, name, bound, intensity in rows:
            y += _ROW
            text = shorten(name, 66)
            line = f"{number:>3} {text}{' ' * (66 - columns(text))} {bound:<8}{intensity:>9}"
            parts.append(f'<text x="16" y="{px(y)}">{escape(line.rstrip())}</text>')
        return [*parts, "</g>"], y

    def _roof(self, intensity: float) -> float:
        assert self.speed is not None
        return min(self.roofline.rate or 0.0, intensity * self.speed.bandwidth)

    def _x(self, intensity: float) -> float:
        share = (math.log10(intensity) - self.low) / (self.high - self.low)
        return _LEFT + share * (WIDTH - _RIGHT - _LEFT)

    def _y(self, rate: float) -> float:
        share = (math.log10(rate) - self.bottom) / (self.top - self.bottom)
        return self._base - min(max(share, 0.0), 1.0) * (self._base - self._top)


def _name(bound: Bound, many: bool) -> str:
    kernel = bound.kernel
    where = f"{kernel.compilation} {kernel.phase} ".lstrip() if many else ""
    return one_line(where + kernel.name)


def _intensity(bound: Bound) -> str:
    return "?" if bound.kernel.intensity is None else f"{bound.kernel.intensity:.3g}"


def _decades(marks: Iterable[float], least: int = 2) -> tuple[int, int]:
    """Return exponents of the powers of ten around all marks, at least ``least`` apart."""
    logs = [math.log10(m) for m in marks if m > 0]
    low, high = (math.floor(min(logs)), math.ceil(max(logs) + 0.05)) if logs else (-1, 1)
    return low, max(high, low + least)


def _numbers(numbers: Iterable[int]) -> str:
    """Return numbers as ranges: ``1, 3–5``."""
    return ", ".join(
        str(a) if a == b else f"{a}–{b}" if b - a > 1 else f"{a}, {b}" for a, b in ranges(numbers)
    )


def _wrap(sentences: Iterable[str]) -> list[str]:
    lines: list[str] = []
    for sentence in sentences:
        lines.append("")
        for word in one_line(sentence).split(" "):
            word = shorten(word, _ROOM)
            if lines[-1] and columns(lines[-1]) + 1 + columns(word) > _ROOM:
                lines.append(word)
            else:
                lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def _power(power: int) -> str:
    if -3 <= power <= 4:
        return f"{10.0**power:g}"
    return f'10<tspan dy="-4" font-size="8">{power}</tspan>'


def _rate(power: int) -> str:
    for base, unit in ((15, "P"), (12, "T"), (9, "G"), (6, "M"), (3, "k")):
        if power >= base:
            return f"{10 ** (power - base)} {unit}flop/s"
    return f"{10.0**power:g} flop/s"


def _style() -> str:
    base = (
        "text{white-space:pre;font-size:11px}.heading{font-size:14px;font-weight:600}"
        ".grid text,.mid,.numbers text{text-anchor:middle}.numbers text{font-weight:600}"
        ".grid text.end,.end{text-anchor:end}.grid path{fill:none;stroke-width:1}"
        ".roof{fill:none;stroke-width:2.2;stroke-linejoin:round}.ridge{fill:none;stroke-dasharray:3 3}"
        ".run,.memory,.compute{stroke-width:1.6}"
    )
    return themed("lens-roofline", base, _colours)


def _colours(theme: Theme, dark: bool) -> str:
    rules = (
        f".paper{{fill:{theme.paper}}}text{{fill:{theme.ink}}}.quiet,.grid text{{fill:{theme.quiet}}}"
        f".grid path{{stroke:{theme.edge};stroke-opacity:.45}}.roof,.ridge{{stroke:{theme.ink}}}"
        f".run{{fill:{theme.saved};stroke:{theme.ink}}}"
    )
    kinds = {f".{MEMORY}": COLOURS["pointwise"], f".{COMPUTE}": COLOURS["matmul"]}
    return rules + fills(kinds, dark)
