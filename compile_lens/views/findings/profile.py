"""What a profiler measured of compiled code: times of each kernel, beside the lines and modules that it came from."""

from __future__ import annotations

from collections.abc import Container, Iterable

from compile_lens.measures.chain import Address, Chain
from compile_lens.measures.timing import seconds_text
from compile_lens.record.capture import Record
from compile_lens.record.profile import BY_ORDER, MeasuredGraph, MeasuredKernel, Profile

from ..document import NAME, NUMBER, TEXT, Finding, Row, Section, Table, cut
from ..words.outline import names, places
from ..words.quantities import plural

KEY, TITLE = "profile", "Profile"
WHERE = "capture.profile"
_ROWS = 500
_HEAD = ("kernel", "launches", "in all", "share", "median", "shortest", "longest", "from", "module")
_KINDS = (NAME, NUMBER, NUMBER, NUMBER, NUMBER, NUMBER, NUMBER, TEXT, NAME)


def profile(capture: Record) -> Finding | None:
    """The finding of a capture; ``None`` where no trace was joined: that is done by ``join`` alone."""
    return None if capture.profile is None else finding(capture.profile, WHERE, Chain(capture))


def finding(found: Profile, where: str, chain: Container[Address] = ()) -> Finding:
    """The finding of a profile, which a capture or a program holds; rows lead to what ``chain`` has."""
    joined = sum(len(graph.kernels) for graph in found.graphs)
    fact = f"{plural(joined, 'kernel')} measured" if joined else "no kernel measured"
    sections: list[Section] = [_table(graph, where, chain) for graph in found.graphs]
    lacking = [Row((missing.stage, missing.reason)) for missing in found.missing]
    lacking += [
        Row((f"{_title(graph)}: {names(stages)}", why))
        for graph in found.graphs
        for why, stages in _by_reason(graph).items()
    ]
    if lacking:
        rows, left = cut(lacking, _ROWS)
        sections.append(Table("not joined", ("what", "why"), (TEXT, TEXT), rows, (), left, where))
    intro = (
        f"Times that torch.profiler measured, from {found.source}. "
        + (
            "Of kernels: on the GPU. "
            if found.device != "cpu"
            else "The profiler's own marks are in them, which weigh on what takes microseconds. "
        )
        + "A share is of the kernels that are joined."
    )
    brief = tuple(
        f"{_title(graph)}: {seconds_text(sum(k.seconds for k in graph.kernels))} in kernels, "
        f"{plural(graph.calls, 'call')} of {seconds_text(graph.seconds)}"
        for graph in found.graphs
        if graph.kernels
    )
    return Finding(KEY, TITLE, intro, fact, brief, where, tuple(sections))


def _by_reason(graph: MeasuredGraph) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for missing in graph.missing:
        found.setdefault(missing.reason, []).append(missing.stage)
    return found


def _title(graph: MeasuredGraph) -> str:
    own = " ".join(x for x in (graph.id, graph.phase) if x) or "of no known compilation"
    other = f" (in the record {graph.compilation})" if graph.compilation not in ("", graph.id) else ""
    return f"{own}{other}"


def _table(graph: MeasuredGraph, where: str, chain: Container[Address]) -> Table:
    whole = sum(kernel.seconds for kernel in graph.kernels)
    rows = [_row(graph, kernel, whole, chain) for kernel in graph.kernels]
    rows += [
        Row((other.name, f"{other.count:,}", seconds_text(other.seconds), "", "", "", "", "not joined", ""))
        for other in graph.unmatched_events
    ]
    shown, left = cut(rows, _ROWS)
    words = [f"{plural(graph.calls, 'call')}, {seconds_text(graph.seconds)} on the host"]
    if any(kernel.matched_by == BY_ORDER for kernel in graph.kernels):
        words.append(
            "library calls are told apart by the order of the launches, generated kernels by their names"
        )
    return Table(_title(graph), _HEAD, _KINDS, shown, tuple(words), left, where)


def _row(graph: MeasuredGraph, kernel: MeasuredKernel, whole: float, chain: Container[Address]) -> Row:
    address = (graph.compilation, f"{graph.phase}.code", kernel.kernel)
    times = (kernel.median_seconds, kernel.min_seconds, kernel.max_seconds)
    return Row(
        (
            kernel.kernel,
            f"{kernel.launches:,}",
            seconds_text(kernel.seconds),
            f"{kernel.seconds / whole:.0%}" if whole else "",
            *map(seconds_text, times),
            _from(kernel),
            names(kernel.modules) if kernel.modules else "",
        ),
        (address,) if address in chain else (),
    )


def _from(kernel: MeasuredKernel) -> str:
    said: Iterable[str] = (
        names(kernel.nodes) if kernel.nodes else "",
        places(kernel.lines) if kernel.lines else "",
    )
    return " ← ".join(x for x in said if x)
