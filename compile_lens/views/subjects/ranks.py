"""The Document of the programs of several ranks, and their differences as plain data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from compile_lens.measures.collective_order import issued_text
from compile_lens.measures.program import compile_seconds, counts
from compile_lens.record.ranks import COLLECTIVES, LEVELS, RankDifference, RanksRecord

from ..document import NAME, NOTE, NUMBER, TEXT, Document, Finding, table_finding
from ..words import program as words
from ..words.quantities import bytes_in_short, duration, plural, ranges


def document(record: RanksRecord) -> Document:
    """Return the Document of several ranks: the differences, each rank, and their collectives."""
    first = record.programs[0]
    names = dict.fromkeys(program.name for program in record.programs)
    findings = (_differences(record), _ranks(record), _collectives(record), _buckets(record))
    return Document(
        "program",
        f"{', '.join(list(names)[:3])}: {plural(len(record.ranks), 'rank')}",
        state(record),
        verdict(record),
        first.created,
        (f"torch {first.environment.torch}",) if first.environment.torch else (),
        findings=tuple(finding for finding in findings if finding is not None),
        notes=record.notes,
        notes_where="ranks.notes",
    )


def state(record: RanksRecord) -> str:
    """Return ``compiled`` if all ranks compiled their whole programs without differences; otherwise ``partial`` or
    ``nothing``."""
    if record.differences:
        return "partial"
    if not any(program.graphs for program in record.programs):
        return "nothing"
    return "compiled" if is_whole(record) and not record.not_compared else "partial"


def verdict(record: RanksRecord) -> str:
    """Return the comparison of all ranks in a sentence without a full stop."""
    unknown = f"; not compared: {'; '.join(record.not_compared)}" if record.not_compared else ""
    if not record.differences and state(record) == "nothing":
        breaks = plural(counts(record.programs[0]).breaks, "break")
        issued = record.programs[0].issued
        calls = f" and {plural(len(issued), 'collective')}" if issued else ""
        nothing = "graphs or shapes" if calls else "graphs, shapes or collectives"
        return (
            f"no graph was compiled on any of {len(record.ranks)} ranks, so there are no {nothing} to compare; each "
            f"met the same: {breaks}{calls}{unknown}"
        )
    if not record.differences:
        rest = "" if is_whole(record) else "; not all of the program was compiled"
        if record.not_compared:
            return f"no difference between the {len(record.ranks)} ranks is known{rest}{unknown}"
        same = "graphs, shapes, breaks, recompiles and collectives"
        return f"all {len(record.ranks)} ranks compiled the same: {same}{rest}"
    levels = dict.fromkeys(one.level for one in record.differences)
    sentence = f"the ranks differ in {', '.join(levels)}: {plural(len(record.differences), 'difference')}"
    if COLLECTIVES in levels:
        sentence += "; a collective or message that not all of its ranks reach makes the others wait forever"
    elif not record.not_compared and any(program.issued for program in record.programs):
        sentence += "; their collectives match"
    return sentence + unknown


def is_whole(record: RanksRecord) -> bool:
    """Return True if each rank compiled its whole program."""
    return all(words.state(program) == "compiled" for program in record.programs)


def ranks(numbers: Iterable[int]) -> str:
    """Return ranks as ranges: ``0, 2-7``."""
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges(numbers))


def _differences(record: RanksRecord) -> Finding | None:
    rows = [
        (one.level, location(one), "\n".join(f"rank {ranks(of)}: {value}" for value, of in one.values))
        for one in record.differences
    ]
    columns = {"level": NAME, "where": TEXT, "by rank": NOTE}
    levels = dict.fromkeys(one.level for one in record.differences)
    intro = "; ".join(f"{level}: {LEVELS[level]}" for level in levels) + "."
    fact, where = plural(len(rows), "difference"), "ranks.differences"
    return table_finding("differences", "What differs", intro, fact, where, columns, rows, beside=True)


def location(one: RankDifference) -> str:
    """Return the place of a difference, with the number of the compile or call."""
    which = f"compile {one.position + 1}"
    if one.level == COLLECTIVES:
        which = f"call {one.position + 1}" + (f" of ranks {ranks(one.group)}" if one.group else "")
    if one.place is None:
        return which
    if not one.place.file:
        return f"{one.place.function}, {which}"
    return f"{words.place(one.place)} in {one.place.function}, {which}"


def _ranks(record: RanksRecord) -> Finding | None:
    rows = []
    for rank, program in zip(record.ranks, record.programs, strict=True):
        own = counts(program)
        calls = "" if program.issued is None else len(program.issued)
        eager = own.skipped + own.partly_compiled + own.at_limit
        figures = map(str, (rank, own.graphs, own.breaks, own.recompiles, eager, calls))
        spent = compile_seconds(program)
        rows.append((*figures, duration(spent) if spent else "", program.ended))
    counted = ("rank", "graphs", "breaks", "recompiles", "eager", "collectives", "compiling")
    columns, fact = {**dict.fromkeys(counted, NUMBER), "ended": TEXT}, plural(len(rows), "rank")
    intro = "What each rank saw of itself."
    return table_finding("ranks", "Ranks", intro, fact, "ranks.programs", columns, rows)


def _collectives(record: RanksRecord) -> Finding | None:
    by_call: dict[tuple[str, ...], Counter[int]] = {}
    for rank, program in zip(record.ranks, record.programs, strict=True):
        for one in program.issued or ():
            call = one.collective
            size = "" if call.bytes is None else bytes_in_short(call.bytes)
            line = words.place(call.line) if call.line else ""
            cells = (issued_text(one), ranks(call.group), str(call.group_number + 1), size, line)
            by_call.setdefault(cells, Counter())[rank] += 1
    rows = []
    several = any(cells[2] != "1" for cells in by_call)
    for (text, group, number, size, line), by_rank in by_call.items():
        by_times: dict[int, list[int]] = {}
        for rank, times in by_rank.items():
            by_times.setdefault(times, []).append(rank)
        name = f"{group} (group {number})" if several else group
        rows += [(ranks(own), str(times), text, name, size, line) for times, own in by_times.items()]
    if not rows:
        return None
    columns = {
        "ranks": NAME,
        "times": NUMBER,
        "collective": TEXT,
        "group": NAME,
        "bytes given": NUMBER,
        "line": NAME,
    }
    intro = (
        "Collectives and messages that each rank issued, from Python, graphs and DDP, in the order of the first call. "
        "Bytes are counted from the sizes of what one rank gives in one call."
    )
    fact = plural(len(by_call), "different call")
    return table_finding("collectives", "Collectives", intro, fact, "program.issued", columns, rows)


def _buckets(record: RanksRecord) -> Finding | None:
    by_cells: dict[tuple[str, ...], list[int]] = {}
    for rank, program in zip(record.ranks, record.programs, strict=True):
        for graph in program.graphs:
            for position, bucket in enumerate(graph.buckets):
                cells = (graph.id, str(position + 1), bytes_in_short(bucket.bytes), str(bucket.parameters))
                by_cells.setdefault(cells, []).append(rank)
    rows = [(ranks(of), *cells) for cells, of in by_cells.items()]
    columns = {"ranks": NAME, "graph": NAME, "bucket": NUMBER, "bytes": NUMBER, "parameters": NUMBER}
    intro = "DDP cuts a graph where a bucket of gradients is full, compiles each piece alone, and reduces each bucket."
    fact, where = plural(len(rows), "bucket"), "program.graphs[i].buckets"
    return table_finding("buckets", "DDP's buckets", intro, fact, where, columns, rows)


def to_dict(record: RanksRecord) -> dict[str, Any]:
    """Return the differences as plain JSON data, without the programs themselves."""
    return {
        "ranks": list(record.ranks),
        "verdict": verdict(record),
        "same": not record.differences and not record.not_compared,
        "not_compared": list(record.not_compared),
        "differences": [asdict(one) for one in record.differences],
        "collectives": {
            str(rank): None if program.issued is None else asdict(program.issued)
            for rank, program in zip(record.ranks, record.programs, strict=True)
        },
        "buckets": {
            str(rank): [{"graph": g.id, **asdict(b)} for g in program.graphs for b in g.buckets]
            for rank, program in zip(record.ranks, record.programs, strict=True)
        },
        "notes": list(record.notes),
    }
