"""Bytes and arithmetic of each kernel, before and after fusion, and its bound on the device."""

from __future__ import annotations

from collections import Counter

from compile_lens.measures.arithmetic import SPECIAL_COST
from compile_lens.measures.roofline import Bound, roof, roofline
from compile_lens.measures.traffic import traffic as traffic_of
from compile_lens.record.capture import Record

from ..document import (
    NAME,
    NOTE,
    NUMBER,
    OPERATIONS,
    TEXT,
    Absence,
    Finding,
    Picture,
    Prose,
    Quantity,
    Row,
    Section,
    Table,
    cut,
)
from .places import bytes_cell, size

KEY, TITLE = "traffic", "Traffic"
INTRO = (
    "What each kernel moves and computes, modelled from sizes, beside what its ATen operators would move alone (one "
    "that two kernels compute stands with both; a special function, such as a sine, counts as "
    f"{SPECIAL_COST} operations); and whether memory or arithmetic bounds it."
)
WHERE = "capture.traffic(), capture.roofline()"

KERNELS = 1_000

PICTURE = 200_000
"""Maximum characters of an included drawing."""


def traffic(capture: Record) -> Finding | None:
    """Return the finding; ``None`` if no kernel was generated."""
    if not capture.kernels:
        return None
    line = roofline(capture)
    rows, left = cut([_row(capture, bound) for bound in line.bounds], KERNELS)
    words = [roof(line)] + ([line.note] if line.note and line.note not in roof(line) else [])
    head = ("kernel", "moves", "alone", "operations", "per byte", "bound by", "why")
    kinds = (NAME, NUMBER, NUMBER, NUMBER, NUMBER, TEXT, NOTE)
    table = Table("kernels", head, kinds, rows, tuple(words), left, WHERE)
    sections: list[Section] = [table]
    svg = line.to_svg()
    # Without known peaks the drawing shows less than the table.
    if line.speed is not None and len(svg) <= PICTURE:
        sections.insert(0, Picture("", svg, f"roofline: {_verdict(line.bounds)}"))
    notes = list(dict.fromkeys(note for b in line.bounds for note in b.kernel.notes))
    if notes:
        sections.append(Prose("what is not known", tuple(notes[:20])))
    moved = traffic_of(capture)
    now = "unknown how much is" if moved.nbytes is None else size(moved.nbytes)
    brief = [f"{now} moved, {size(moved.before)} if each ATen operator ran alone"]
    brief += words
    fact = f"{size(moved.nbytes)} moved" if moved.nbytes is not None else _verdict(line.bounds)
    if line.speed is not None:
        brief += [f"{b.kernel.phase} {b.kernel.name}: {b.sentence}" for b in line.bounds]
        fact = _verdict(line.bounds)
    return Finding(KEY, TITLE, INTRO, fact, tuple(brief), WHERE, tuple(sections))


def _verdict(bounds: tuple[Bound, ...]) -> str:
    kinds = Counter(bound.bound for bound in bounds)
    parts = [f"{count} {kind}-bound" for kind, count in kinds.items() if kind]
    parts += [f"{kinds['']} without a verdict"] if kinds[""] else []
    return ", ".join(parts)


def _row(capture: Record, bound: Bound) -> Row:
    kernel = bound.kernel
    place = f"{kernel.compilation} {kernel.phase}" if len(capture.compilations) > 1 else kernel.phase
    cells = (
        f"{place}: {kernel.name}",
        bytes_cell(kernel.nbytes, "bytes moved"),
        bytes_cell(kernel.before, "bytes of the operators alone"),
        Absence("operations", "not known") if kernel.work is None else Quantity(kernel.work, OPERATIONS),
        Absence("intensity", "not known") if kernel.intensity is None else Quantity(kernel.intensity),
        bound.bound or Absence("bound", "not known"),
        bound.sentence,
    )
    # A capture of one compilation does not name it.
    cid = kernel.compilation or next(c.id for c in capture.compilations if kernel.phase in c.code)
    return Row(cells, ((cid, f"{kernel.phase}.code", kernel.name),))
