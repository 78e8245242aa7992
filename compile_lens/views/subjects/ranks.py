"""The Document of the programs of several ranks, and what differs as plain data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from compile_lens.measures.program import compile_seconds, counts
from compile_lens.measures.ranks import collectives, difference_text
from compile_lens.record.ranks import COLLECTIVES, LEVELS, RankDifference, RanksRecord

from ..document import NAME, NOTE, NUMBER, TEXT, Document, Finding, table_finding
from ..words import program as words
from ..words.quantities import bytes_in_short, duration, plural, ranges


def document(record: RanksRecord) -> Document:
    """The Document of several ranks: the differences first, then each rank, and what the ranks do together."""
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
    """``compiled`` where all ranks compiled the same, and all of it; otherwise ``partial``, or
    ``nothing``."""
    if not any(program.graphs for program in record.programs):
        return "nothing"
    whole = all(words.state(program) == "compiled" for program in record.programs)
    return "compiled" if whole and not record.differences else "partial"


def verdict(record: RanksRecord) -> str:
    """The comparison of all ranks in a sentence without a full stop."""
    if not record.differences and state(record) == "nothing":
        met = plural(counts(record.programs[0]).breaks, "break")
        calls = sum(compared for _, _, compared in collectives(record.programs[0]))
        nothing = "graphs or shapes" if calls else "graphs, shapes or collectives"
        met += f" and {plural(calls, 'collective')}, called by Python" if calls else ""
        return (
            f"no graph was compiled on any of {len(record.ranks)} ranks, so that there are no {nothing} to compare; "
            f"each met the same: {met}"
        )
    if not record.differences:
        rest = "" if state(record) == "compiled" else "; not all of the program was compiled"
        same = "graphs, shapes, breaks, recompiles and collectives" + (
            "" if _outside(record) else " of graphs"
        )
        return f"all {len(record.ranks)} ranks compiled the same: {same}{rest}"
    levels = dict.fromkeys(one.level for one in record.differences)
    sentence = f"the ranks differ in {', '.join(levels)}: {plural(len(record.differences), 'difference')}"
    if COLLECTIVES in levels:
        sentence += (
            "; a collective that not all ranks call in the same order makes them wait for each other for ever"
        )
    return sentence


def _outside(record: RanksRecord) -> bool:
    """Return True if collectives outside of graphs were observed."""
    return all(program.eager_collectives is not None for program in record.programs)


def ranks(numbers: Iterable[int]) -> str:
    """Ranks as ranges: ``0, 2-7``."""
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges(numbers))


def _differences(record: RanksRecord) -> Finding | None:
    rows = [
        (one.level, _where(one), "\n".join(f"rank {ranks(of)}: {value}" for value, of in one.values))
        for one in record.differences
    ]
    columns = {"level": NAME, "where": TEXT, "by rank": NOTE}
    levels = dict.fromkeys(one.level for one in record.differences)
    intro = "; ".join(f"{level}: {LEVELS[level]}" for level in levels) + "."
    fact, where = plural(len(rows), "difference"), "ranks.differences"
    return table_finding("differences", "What differs", intro, fact, where, columns, rows, beside=True)


def _where(one: RankDifference) -> str:
    which = f"collective {one.position + 1}" if one.level == COLLECTIVES else f"compile {one.position + 1}"
    if one.place is None:
        return which
    return f"{words.place(one.place)} in {one.place.function}, {which}"


def _ranks(record: RanksRecord) -> Finding | None:
    rows = []
    for rank, program in zip(record.ranks, record.programs, strict=True):
        own = counts(program)
        calls = len(collectives(program))
        eager = own.skipped + own.partly_compiled + own.at_limit
        figures = map(str, (rank, own.graphs, own.breaks, own.recompiles, eager, calls))
        spent = compile_seconds(program)
        rows.append((*figures, duration(spent) if spent else "", program.ended))
    counted = ("rank", "graphs", "breaks", "recompiles", "eager", "collectives", "compiling")
    columns, fact = {**dict.fromkeys(counted, NUMBER), "ended": TEXT}, plural(len(rows), "rank")
    intro = "What each rank saw of itself."
    return table_finding("ranks", "Ranks", intro, fact, "ranks.programs", columns, rows)


_OUTSIDE = (
    " Those that Python calls outside of graphs each time, where it did; in a group of some ranks alone they are not "
    "compared. Functional collectives that Python calls outside of graphs (as DTensor does), and messages from one "
    "rank to another, are not seen."
)


def _collectives(record: RanksRecord) -> Finding | None:
    rows = []
    for rank, program in zip(record.ranks, record.programs, strict=True):
        for graph, one, compared in collectives(program):
            size = "" if one.bytes is None else bytes_in_short(one.bytes)
            of = graph or ("Python" if compared else "Python, not compared")
            rows.append((rank, (of, difference_text(one), size, words.place(one.line) if one.line else "")))
    if not rows:
        return None
    by_cells: dict[tuple[int, tuple[str, ...]], list[int]] = {}
    seen: dict[int, int] = {}
    for rank, cells in rows:
        position = seen[rank] = seen.get(rank, -1) + 1
        by_cells.setdefault((position, cells), []).append(rank)
    columns = {"number": NUMBER, "ranks": NAME, "graph": NAME, "collective": TEXT, "bytes given": NUMBER}
    each = (
        (str(position + 1), ranks(of), *cells)
        for (position, cells), of in sorted(by_cells.items(), key=lambda one: (one[0][0], one[1]))
    )
    intro = "Those of a graph once, where it was compiled; it calls them each time that it runs."
    intro += _OUTSIDE if _outside(record) else ""
    intro += " Bytes are counted from the sizes of what one rank gives."
    total, where = plural(max(seen.values()) + 1, "collective"), "program.graphs[i].collectives"
    columns["line"] = NAME
    return table_finding("collectives", "Collectives", intro, total, where, columns, each)


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
    """The differences as plain JSON data, without the programs themselves."""
    return {
        "ranks": list(record.ranks),
        "verdict": verdict(record),
        "same": not record.differences,
        "differences": [asdict(one) for one in record.differences],
        "collectives": {
            str(rank): [
                {"graph": graph, "compared": compared, **asdict(one)}
                for graph, one, compared in collectives(program)
            ]
            for rank, program in zip(record.ranks, record.programs, strict=True)
        },
        "buckets": {
            str(rank): [{"graph": g.id, **asdict(b)} for g in program.graphs for b in g.buckets]
            for rank, program in zip(record.ranks, record.programs, strict=True)
        },
        "notes": list(record.notes),
    }
