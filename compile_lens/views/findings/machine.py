"""The machine code of all kernels in a table: registers, shared memory, spills, instructions."""

from __future__ import annotations

from collections.abc import Sequence

from compile_lens.record.capture import Record
from compile_lens.record.kernel import Kernel
from compile_lens.record.messages import first_names

from ..document import NAME, NOTE, NUMBER, TEXT, Finding, Prose, Row, Section, Table, cut
from ..words import machine, quantities
from .places import places

KEY, TITLE = "machine", "Machine code"
INTRO = "What the device's own compiler made of each kernel; nothing was run for it."
WHERE = "kernel.machine"

KERNELS = 1_000


def machine_code(capture: Record) -> Finding | None:
    """Return the finding; ``None`` if no kernel has machine code or a reason for its absence."""
    kernels = [k for k in capture.kernels if k.machine is not None or k.machine_note]
    if not kernels:
        return None
    built = [k for k in kernels if k.machine is not None]
    all_rows: list[Row] = []
    for place in places(capture):
        code = place.compilation.code.get(place.phase)
        for kernel in code.kernels if code is not None else ():
            if kernel.machine is not None or kernel.machine_note:
                cells = _cells(f"{place.title}: {kernel.name}", kernel)
                all_rows.append(Row(cells, (place.at("code", kernel.name),)))
    rows, left = cut(all_rows, KERNELS)
    head = ("kernel", *machine.HEAD[:-1], "configurations", "note")
    kinds = (NAME, TEXT, *(NUMBER,) * 6, NOTE)
    words = tuple(dict.fromkeys(k.machine.compiler for k in built if k.machine is not None))
    sections: list[Section] = [Table("kernels", head, kinds, rows, words, left, WHERE)]
    why = tuple(dict.fromkeys(words for k in kernels for words in machine.missing(k)))
    if why:
        sections.append(Prose("what is missing", why[:20]))
    fact = f"{len(built):,} of {quantities.plural(len(capture.kernels), 'kernel')}"
    brief = [*_brief(built), *why[:4]]
    return Finding(KEY, TITLE, INTRO, fact, tuple(brief), WHERE, tuple(sections))


def _cells(name: str, kernel: Kernel) -> tuple[str, ...]:
    figures = (value or quantities.NOT_KNOWN for value in machine.figures(kernel)[:-1])
    return (name, *figures, f"{len(kernel.candidates):,}", "; ".join(machine.missing(kernel)))


def _brief(built: Sequence[Kernel]) -> list[str]:
    """Return the ranges over all kernels, to make outliers visible."""
    if not built:
        return []
    machines = [k.machine for k in built if k.machine is not None]
    archs = ", ".join(dict.fromkeys(m.arch for m in machines))
    lines = [f"{quantities.plural(len(built), 'kernel')} for {archs}"]
    registers = [m.registers for m in machines if m.registers is not None]
    if registers:
        lines.append(f"{_range(registers)} registers a thread")
    spilling = [k.name for k in built if k.machine is not None and k.machine.spills]
    if spilling:
        lines.append(f"registers spill in {first_names(spilling, 4)}")
    elif any(m.spills is not None for m in machines):
        lines.append("no spills")
    widths = [m.vector_bits for m in machines if m.vector_bits is not None]
    if widths:
        lines.append(f"{_range(widths)}-bit vectors")
    instructions = [m.instructions for m in machines if m.instructions is not None]
    if instructions:
        lines.append(f"{_range(instructions)} instructions")
    return [", ".join(lines)]


def _range(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
