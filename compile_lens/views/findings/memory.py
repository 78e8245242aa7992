"""Findings on memory: by line and name, live buffers of the generated code over time, tensors saved for the
backward."""

from __future__ import annotations

from dataclasses import replace

from compile_lens.measures.input_names import BUFFER, PARAMETER
from compile_lens.measures.memory_budget import FITS, memory_budget
from compile_lens.measures.memory_use import (
    COPY,
    PART,
    UNKNOWN,
    MemoryRow,
    MemoryUse,
    memory_use,
    pattern,
)
from compile_lens.record.capture import Record
from compile_lens.record.compilation import Compilation
from compile_lens.record.memory import Buffer, Memory, Partition, SavedTensor, saved_bytes
from compile_lens.record.messages import first_names

from ..document import NAME, NOTE, NUMBER, TEXT, Cell, Finding, Picture, Prose, Row, Section, Table, cut
from ..drawing.lanes import timeline
from ..words import labels, quantities
from ..words.characters import aligned, capitalized, flat
from ..words.quantities import memory_in_short, printed
from .budget_curve import NOT_ASKED, curve_sections, headline
from .cost import percent
from .places import Place, in_memory, memory_cell, places, title

KEY, TITLE = "memory", "Memory"
INTRO = (
    "Live buffers at each line of the generated code, modelled from the order of its lines: "
    "the allocator is not queried. Counted is what one graph reads and makes; not what others save for their backward, "
    "gradients and an optimizer's state that are still to come, and what the device's driver and libraries take."
)
WHERE = "capture.compilations[i].memory"
MISSING = "not in the record"

BUFFERS = 1_000
BRIEF_LINES = 3
"""Maximum lines named in a short text."""


def memory(capture: Record) -> Finding | None:
    """Return the finding; None if no code was generated."""
    if not any(c.code for c in capture.compilations):
        return None
    sections: list[Section] = []
    brief: list[str] = []
    phases: list[str] = []
    peaks: list[tuple[int, Place]] = []
    for place in places(capture):
        for held in place.compilation.memory:
            if held.phase == place.phase:
                more = _too_much(capture, held)
                sections += _live_sections(place, held, more)
                phases.append(_brief(place, held, more))
                peaks += [] if held.peak is None else [(held.peak, place)]
    for compilation in capture.compilations:
        if compilation.partition is not None:
            where = title(capture, compilation, labels.SAVED)
            sections += _partition(where, compilation, compilation.partition)
            brief.append(f"{where}: {_choice(compilation.partition)}")
    by_line = memory_use(capture, "line")
    named = any(row.kind in (PARAMETER, BUFFER) for row in by_line.rows)
    if named or sum(row.line is not None for row in by_line.rows) > 1:  # otherwise there is only one line
        sections[:0] = [_use(by_line), _use(memory_use(capture, "name"))]
        brief += [_in_line(row) for row in by_line.rows[:BRIEF_LINES] if row.peak]
    brief += phases
    if capture.budget_curve is not None:
        lowest = headline(capture.budget_curve)
        sections[:0] = [Prose("", (lowest,)), *curve_sections(capture.budget_curve)]
        brief.insert(0, f"by budget: {lowest}")
    elif any(saved_bytes(c.partition.saved) for c in capture.compilations if c.partition is not None):
        sections.append(Prose("by budget", (NOT_ASKED,)))
    if not sections:
        return Finding(KEY, TITLE, INTRO, where=WHERE, missing=MISSING)
    fact, badge = _peak(peaks, len(capture.compilations) > 1)
    return Finding(KEY, TITLE, INTRO, fact, tuple(brief), WHERE, tuple(sections), badge=badge)


def _use(use: MemoryUse) -> Table:
    rows, left = cut([_use_row(use, row) for row in use.rows], BUFFERS)
    if use.by == "line":
        head: tuple[str, ...] = ("at the peak", "share", "saved", "tensors", "line", "expression")
        kinds: tuple[str, ...] = (NUMBER, NUMBER, NUMBER, NUMBER, TEXT, NOTE)
    else:
        head = ("at the peak", "share", "name", "saved", "kind", "tensors", "line", "module")
        kinds = (NUMBER, NUMBER, NAME, NUMBER, TEXT, TEXT, TEXT, NAME)
    return Table(
        f"by {use.by}", head, kinds, rows, (_total(use), *use.missing), left, f"capture.memory({use.by!r})"
    )


def _total(use: MemoryUse) -> str:
    compilation, _, phase = use.place.rpartition(" ")
    where = f" in the {phase} of compilation {compilation}" if compilation else ""
    peak = "The peak is not known" if use.peak is None else f"Peak {in_memory(use.peak)}{where}"
    if use.saved is None:
        return f"{peak}."
    which = ", by all graphs" if use.partitions > 1 else ""
    return f"{peak}; saved for the backward{which}: {in_memory(use.saved) if use.saved else 'nothing'}."


def _use_row(use: MemoryUse, row: MemoryRow) -> Row:
    saved = _bytes(row.saved) if row.saved_tensors else ""
    share = percent(row.share) if row.share else ""
    peak = _bytes(row.peak)
    if use.by == "line":
        name = owner(row)
        cells: tuple[Cell, ...] = (peak, share, saved, f"{row.tensors:,}", name, row.expression)
    else:
        tensors = f"{row.tensors} × {row.tensor}" if row.tensors > 1 and row.tensor else row.tensor
        tensors = tensors or quantities.plural(row.tensors, "tensor")
        line = labels.place(row.line) if row.line is not None else ""
        modules = first_names(dict.fromkeys(map(pattern, row.modules)), 2)
        cells = (peak, share, row.name, saved, row.kind, tensors, line, modules)
    return Row(cells, row.addresses)


def owner(row: MemoryRow) -> str:
    """Return the name of a row, or a description: "149 parameters", "3 tensors whose line is not known"."""
    if row.name:
        return row.name
    if row.kind == COPY:
        return quantities.plural(
            row.tensors, "copy of an input or parameter", "copies of inputs or parameters"
        )
    tensors = {"": "tensor", UNKNOWN: "tensor", PART: "intermediate value"}.get(row.kind, row.kind)
    return quantities.plural(row.tensors, tensors) + (
        " whose line is not known" if row.kind == UNKNOWN else ""
    )


def _in_line(row: MemoryRow) -> str:
    saved = f", {in_memory(row.saved)} saved" if row.saved else ""
    name = f"{owner(replace(row, tensors=row.live_tensors))}  {row.expression}".rstrip()
    return f"{percent(row.share or 0)} of the peak, {in_memory(row.peak)}{saved}: {name}"


def _bytes(nbytes: int | None) -> Cell:
    """Return the cell for bytes of memory; 0 is exact, not modelled."""
    return "0 B" if nbytes == 0 else memory_cell(nbytes)


LISTED = 12
"""Maximum rows in the text of a memory use."""


def text(use: MemoryUse, rest: str = ".rows", listed: int = LISTED) -> str:
    """Return a memory use as text with at most ``listed`` rows; ``rest`` is where the others are."""
    if not use.rows:
        return "\n".join(use.missing) or "no code was generated"
    allocated = (
        ""
        if use.allocated is None
        else f" Allocated in one call, without inputs: {in_memory(use.allocated)}."
    )
    lines = [f"Memory by {use.by}, modelled. {_total(use)}{allocated}"]
    table = _use(use)
    shown = [[flat(printed(cell)) for cell in row.cells] for row in table.rows[:listed]]
    lines += aligned([table.head, *shown], [kind == NUMBER for kind in table.kinds])
    lines += [f"… {len(use.rows) - listed} more: {rest}"] if len(use.rows) > listed else []
    return "\n".join([*lines, *(f"not known: {reason}" for reason in use.missing)])


def _peak(peaks: list[tuple[int, Place]], several: bool) -> tuple[str, str]:
    """Return the largest peak, with its compilation if there are several, since a page shows one."""
    if not peaks:
        return "peak not known", ""
    most, place = max(peaks, key=lambda pair: pair[0])
    peak = in_memory(most)
    if not several:
        return f"peak {peak}", peak
    return f"peak {peak} in {place.title}", f"{peak} in {place.compilation.id}"


def _brief(place: Place, held: Memory, more: str) -> str:
    peak = f"peak {in_memory(held.peak)}" if held.peak is not None else f"peak not known: {held.note}"
    return f"{place.title}: {peak}{f', {more}' if more else ''}, {_counts(held)}"


def _too_much(capture: Record, held: Memory) -> str:
    """Return a sentence on memory that exceeds the device's; ``""`` if it fits, or is unknown."""
    fit = memory_budget(capture, held)
    if fit is None or fit.verdict == FITS or capture.target is None:
        return ""
    more = (
        f" with {in_memory(fit.other_bytes)} that the function and its arguments hold and this graph does not read, at "
        f"least {in_memory(fit.needed_bytes)},"
        if fit.other_bytes
        else ""
    )
    there = memory_in_short(fit.smallest_memory)
    if fit.largest_memory != fit.smallest_memory:
        published = f"{fit.smallest_memory // 10**9} GB are published, of 10^9 or 2^30 bytes"
        there = f"{there} to {memory_in_short(fit.largest_memory)}: {published}"
    return f"{more} which {fit.verdict}: {capture.target.model.title} has {there}".strip()


def _counts(held: Memory) -> str:
    inside = [b for b in held.buffers if b.kind != "input"]
    inputs = len(held.buffers) - len(inside)
    parts = [quantities.plural(inputs, "input")] if inputs else []
    parts += [f"{quantities.plural(len(inside), 'buffer')} made"]
    reused = len(held.reused)
    parts += [f"{reused} in the memory of another"] if reused else []
    donated = len(held.donated)
    parts += [f"{quantities.plural(donated, 'input')} donated"] if donated else []
    return ", ".join(parts)


def _live_sections(place: Place, held: Memory, more: str) -> list[Section]:
    words = [f"{_counts(held)}."]
    if held.peak is not None:
        at = f"at line {held.peak_line} of the module" if held.peak_line else "on entry"
        words.insert(
            0, f"At most {in_memory(held.peak)} are live at once, {at}{f', {more}' if more else ''}."
        )
    words += [held.note] if held.note else []
    every = sorted(held.buffers, key=lambda b: (b.kind != "input", b.alloc_line, b.name))
    rows, left = cut([_row(place, buffer) for buffer in every], BUFFERS)
    head = ("buffer", "kind", "bytes", "lines", "memory", "holds")
    kinds = (NAME, TEXT, NUMBER, NUMBER, TEXT, NAME)
    table = Table(f"{place.title}: buffers", head, kinds, rows, tuple(words), left, WHERE)
    code = place.compilation.code.get(place.phase)
    last = code.text.count("\n") + 1 if code is not None else 0
    svg = timeline(held, last)
    if not svg:
        return [table]
    alt = f"which of {quantities.plural(len(held.buffers), 'buffer')} are live at which line, {place.title}"
    return [Picture(f"{place.title}: when each buffer is live", svg, alt), table]


def _row(place: Place, buffer: Buffer) -> Row:
    born = str(buffer.alloc_line) if buffer.alloc_line else "entry"
    dead = str(buffer.free_line) if buffer.free_line else "end"
    how = [f"takes over {buffer.reuses}"] if buffer.reuses else []
    how += [f"part of {buffer.base}"] if buffer.base else []
    how += ["donated: may be taken over"] if buffer.donated else []
    cells = (
        buffer.name,
        buffer.kind,
        memory_cell(buffer.nbytes),
        f"{born}–{dead}",
        ", ".join(how),
        first_names(buffer.origins, 4),
    )
    return Row(cells, tuple(place.at("post_grad", origin) for origin in buffer.origins))


def _partition(where: str, compilation: Compilation, partition: Partition) -> list[Section]:
    chosen = {kept.node: kept for kept in partition.saved}
    default = {kept.node: kept for kept in partition.default or ()}
    forward = compilation.graphs.get("forward")
    inputs = {n.name for n in forward.nodes if n.op == "placeholder"} if forward is not None else set()
    rows = []
    for node in (*chosen, *(name for name in default if name not in chosen)):
        kept = chosen.get(node) or default[node]
        other = "not known" if partition.default is None else _yes(node in default)
        memory = _memory(kept, kept.node in inputs)
        cells = (node, memory_cell(kept.nbytes), memory, _yes(node in chosen), other)
        rows.append(Row(cells, tuple((compilation.id, "joint", origin) for origin in kept.origins)))
    shown, left = cut(rows, BUFFERS)
    words = [
        f"{capitalized(_choice(partition))}.",
        "The min-cut partitioner, Inductor's own, saves what costs more to compute again than to save.",
    ]
    words += [partition.note] if partition.note else []
    head = ("node of the joint graph", "bytes", "memory", "min-cut saves", "default saves")
    kinds = (NAME, NUMBER, TEXT, TEXT, TEXT)
    sections: list[Section] = [Table(where, head, kinds, shown, tuple(words), left, WHERE)]
    if partition.recomputed:
        some = first_names(partition.recomputed, 60)
        sections.append(Prose(f"{where}: computed again in the backward", (some,)))
    return sections


def _memory(kept: SavedTensor, given: bool) -> str:
    """Return the owner of the memory of a saved tensor, in words."""
    if kept.alias_of == kept.node:
        return "none: an input" if given else "none: a result"
    if kept.alias_of:
        return f"none: lies in {kept.alias_of}"
    if not given:
        return "its own"
    return "not known" if kept.nbytes is None else "its own: a copy of the input"


def _yes(kept: bool) -> str:
    return "yes" if kept else "no"


def _choice(partition: Partition) -> str:
    words = f"saves {_saved_words(partition.saved)}"
    if partition.default is not None:
        words += f"; the default partitioner would save {_saved_words(partition.default)}"
    if partition.recomputed:
        words += f"; {quantities.plural(len(partition.recomputed), 'node')} computed again"
    return words


def _saved_words(kept: tuple[SavedTensor, ...]) -> str:
    own, shared = saved_bytes(kept), sum(bool(tensor.alias_of) for tensor in kept)
    count = quantities.plural(len(kept), "tensor")
    if not kept:
        return "nothing"
    if shared == len(kept):
        return f"{count}, in inputs and results"
    if not shared:
        return f"{count}, {in_memory(own)} besides inputs and results"
    return f"{count}: {shared} in inputs and results, {len(kept) - shared} beside them, {in_memory(own)}"
