"""Slides of a lesson: the question, the experiment's code and outputs, key sentences, tasks, and what to take home."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterator

from compile_lens.layout.text import columns

from .lesson import Block, Lesson, Step
from .pages import LICENCE, page, prose, python

WIDE, HIGH = 90.0, 42.0
"""Rem that the blocks of a slide have, of 100 by 56.25."""

LARGEST, SMALLEST = 2.3, 1.6
"""Rem of code: as large as its lines allow, and split among slides rather than smaller."""

PAD = 2.6
"""Rem around a block."""


def slides(lesson: Lesson) -> str:
    """Return the slides as one HTML file, which prints a page for each."""
    bodies = list(_sections(lesson))
    sections = [
        f"<section{' class=title' if not number else ''}>{body}<footer><span>{html.escape(lesson.title)}</span>"
        f"<span>{LICENCE[lesson.language]}</span><span>{number + 1} / {len(bodies)}</span></footer></section>\n"
        for number, body in enumerate(bodies)
    ]
    return page("slides", lesson.title, lesson.language, sections)


def _sections(lesson: Lesson) -> Iterator[str]:
    yield f'<h1>{html.escape(lesson.title)}</h1><main><div class="text">{prose(lesson.opening)}</div></main>'
    end = (lesson.exercises, (lesson.take_home[0], [Block("text", lesson.take_home[1])]))
    for step in (Step(*lesson.question), *lesson.steps(), *(Step(*one) for one in end)):
        parts = list(_fitted(step))
        for number, part in enumerate(parts, 1):
            yield _section(step.heading, part, f" {number}/{len(parts)}" if len(parts) > 1 else "")


def _section(heading: str, blocks: list[Block], part: str = "") -> str:
    lead = "text" if all(one.kind == "text" for one in blocks) else "lead"
    if lead == "text" and sum(columns(one.content) for one in blocks) <= 260:
        lead = "text large"
    size = min(max(_size(blocks), SMALLEST), LARGEST)
    small = f" <small>{part}</small>" if part else ""
    *first, last = (_shown(one, lead) for one in blocks)
    beside = ' class="beside"' if first and blocks[-1].kind == "svg" and not _landscape(blocks[-1]) else ""
    body = f"<div>{''.join(first)}</div>{last}" if beside else "".join((*first, last))
    return f'<h2>{html.escape(heading)}{small}</h2><main{beside} style="--size: {size:.2f}rem">{body}</main>'


def _shown(block: Block, lead: str) -> str:
    if block.kind == "text":
        return f'<div class="{lead}">{prose(block.content)}</div>'
    if block.kind == "code":
        return f"<pre>{python(block.content)}</pre>"
    if block.kind == "svg":
        return f'<div class="drawing">{block.content}</div>'
    if block.kind == "live":
        frame = f'<iframe loading="lazy" srcdoc="{html.escape(block.content)}"></iframe>'
        return f'{frame}<pre class="print">{html.escape(block.plain)}</pre>'
    return f'<pre class="print">{html.escape(block.content)}</pre>'


def _fitted(step: Step) -> Iterator[list[Block]]:
    """Yield the blocks of each slide of a step: together where there is room, else each by itself, or in parts."""
    together: list[Block] = []
    for block in step.blocks:
        if block.kind == "svg" and all(_narrow(one) for one in together):
            yield [*together, block]
            together = []
            continue
        large = _size([block]) < SMALLEST
        room = HIGH - sum(_height(one, SMALLEST) for one in together)
        # A page wants a slide for itself, and a block that is split begins beside a short text.
        crowded = (
            room < HIGH * 0.7
            if large or block.kind in ("svg", "live")
            else _size([*together, block]) < SMALLEST
        )
        if together and crowded:
            yield together
            together, room = [], HIGH
        if not large or block.kind in ("text", "svg"):
            together.append(block)
            continue
        for part in _split(block, room):
            if together and together[-1].kind != "text":
                yield together
                together = []
            together.append(part)
    if together:
        yield together


def _landscape(drawing: Block) -> bool:
    """Return True if a drawing is so wide that it belongs below other blocks, not beside them."""
    box = re.search(r'viewBox="[-\d.]+ [-\d.]+ ([\d.]+) ([\d.]+)"', drawing.content)
    return box is not None and float(box[1]) > 1.4 * float(box[2])


def _narrow(block: Block) -> bool:
    """Return True if a block may stand beside a drawing."""
    return columns(block.content) <= 260 and block.kind in ("text", "code")


def _size(blocks: list[Block]) -> float:
    """Return the largest type in rem at which the lines of the blocks' code fit on a slide."""
    size = LARGEST
    while size > 1 and sum(_height(one, size) for one in blocks) > HIGH:
        size -= 0.05
    return size if size > 1 else 0


def _height(block: Block, size: float) -> float:
    if block.kind == "text":
        return sum(math.ceil(columns(line) / 88) * 3.0 + 1.1 for line in block.content.split("\n\n"))
    if block.kind == "svg":
        return 36.0
    return _lines(block, size) * size * 1.3 + PAD


def _lines(block: Block, size: float) -> int:
    most = (WIDE - 2 * size) / (0.605 * size)
    return sum(max(math.ceil(columns(line) / most), 1) for line in _text(block).split("\n"))


def _text(block: Block) -> str:
    return block.plain if block.kind == "live" else block.content


def _split(block: Block, room: float) -> Iterator[Block]:
    """Yield parts of a block that no slide holds, between lines: ``room`` is the height that the first one has."""
    lines = _text(block).split("\n")
    live = block.kind == "live"
    while lines:
        most = fitting = _fitting(lines, room)
        while most < len(lines) and most > fitting // 2 and not _ends(lines[most - 1], lines[most]):
            most -= 1
        # Where nothing ends in the second half, a part is as long as there is room.
        most = fitting if most <= fitting // 2 and most < len(lines) else most
        text = "\n".join(lines[:most]).strip("\n")
        yield (
            Block("live", block.content, text)
            if live
            else Block("print" if block.kind == "live" else block.kind, text)
        )
        lines, room, live = lines[most:], HIGH, False


def _fitting(lines: list[str], room: float) -> int:
    """Return how many of the lines fit, at least one."""
    count = 1
    while count < len(lines) and _height(Block("print", "\n".join(lines[: count + 1])), SMALLEST) <= room:
        count += 1
    return count


def _ends(last: str, following: str) -> bool:
    """Return True if a statement or a paragraph ends between two lines."""
    return not last.strip() and following[:1].strip() != ""
