"""When each buffer is held, as SVG: a bar for each, over the lines of the generated module."""

from __future__ import annotations

import html
from collections.abc import Callable

from compile_lens.record.memory import Buffer, Memory

from ..words.characters import flat
from ..words.palette import COLOURS, DARK, LIGHT

MOST = 40
"""Buffers that are drawn: the largest."""

_WIDTH, _LEFT, _ROW, _HELD = 640, 150, 15, 46
_KINDS = {"input": "input", "intermediate": "pointwise", "output": "output", "saved": "reduction"}
"""The colours of the kinds of buffers, by kinds of nodes."""


def timeline(memory: Memory, last: int) -> str:
    """The drawing; ``last`` is the last line of the module. ``""`` where no size is known."""
    sized = [b for b in memory.buffers if b.nbytes and not b.base]
    if not sized:
        return ""
    lines = [line for b in sized for line in (b.alloc_line, b.free_line) if line]
    first, end = min(lines, default=1) - 1, max([*lines, _end(last, lines)])
    largest = sorted(sized, key=lambda b: -(b.nbytes or 0))[:MOST]
    shown = [b for b in sized if b in largest]
    scale = (_WIDTH - _LEFT - 8) / max(end - first, 1)

    def x(line: int, otherwise: int) -> float:
        return round(_LEFT + ((line or otherwise) - first) * scale, 1)

    height = _HELD + 12 + _ROW * len(shown) + (16 if len(shown) < len(sized) else 4)
    parts = [_curve(sized, first, end, x)]
    for number, buffer in enumerate(shown):
        parts.append(
            _bar(buffer, _HELD + 12 + _ROW * number, x(buffer.alloc_line, first), x(buffer.free_line, end))
        )
    if len(shown) < len(sized):
        parts.append(f'<text x="{_LEFT}" y="{height - 4}">and {len(sized) - len(shown)} smaller ones</text>')
    size = f'viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>'
    return f"{head}<style>{_style()}</style>{''.join(parts)}</svg>"


def _end(last: int, lines: list[int]) -> int:
    """The last line that is drawn: that of the module, where the record knows it."""
    return min(last, max(lines, default=0) + 4) if last else max(lines, default=1) + 1


def _curve(sized: list[Buffer], first: int, end: int, x: Callable[[int, int], float]) -> str:
    """How many bytes are held at each line. Memory that is taken over counts once."""
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
    label = f'<text x="{_LEFT - 6}" y="{_HELD - 14}" class="end">held at once</text>'
    axis = f'<text x="{_LEFT}" y="10">line {first + 1}</text><text x="{_WIDTH - 8}" y="10" class="end">{end}</text>'
    return f'<polygon class="held" points="{area}"/>{label}{axis}'


def _bar(buffer: Buffer, y: float, left: float, right: float) -> str:
    kind = _KINDS.get(buffer.kind, "other")
    name = html.escape(flat(buffer.name if len(buffer.name) < 22 else buffer.name[:20] + "…"))
    said = html.escape(flat(f"{buffer.name}, {buffer.kind}, {buffer.nbytes or 0:,} bytes"))
    note = f"takes over {buffer.reuses}" if buffer.reuses else "donated" if buffer.donated else ""
    inside = html.escape(flat(note[:40]))
    return (
        f'<text x="{_LEFT - 6}" y="{y + 9}" class="end">{name}</text>'
        f'<rect class="{kind}" x="{left}" y="{y}" width="{max(round(right - left, 1), 2)}" height="11" rx="2">'
        f"<title>{said}</title></rect>"
        + (f'<text x="{left + 5}" y="{y + 9}">{inside}</text>' if inside else "")
    )


def _style() -> str:
    kinds = (*dict.fromkeys(_KINDS.values()), "other")
    light = "".join(f".{k}{{fill:{COLOURS[k].fill};stroke:{COLOURS[k].line}}}" for k in kinds)
    dark = "".join(f".{k}{{fill:{COLOURS[k].dark_fill};stroke:{COLOURS[k].dark_line}}}" for k in kinds)
    return (
        f"text{{font:10px sans-serif;fill:{LIGHT.quiet}}}.end{{text-anchor:end}}.held{{fill:{LIGHT.edge};opacity:.45}}"
        f"{light}@media(prefers-color-scheme:dark){{text{{fill:{DARK.quiet}}}.held{{fill:{DARK.edge}}}{dark}}}"
    )
