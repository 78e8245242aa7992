"""Findings on measured times: each variant of the function with its spread, the time of each kernel, and
conclusions."""

from __future__ import annotations

from collections.abc import Container, Iterable

from compile_lens.measures import timing
from compile_lens.measures.chain import Address, Chain
from compile_lens.measures.profile import by_line, by_module
from compile_lens.measures.timing import seconds_text
from compile_lens.record.benchmark import BY_ORDER, Benchmark, MeasuredGraph, MeasuredKernel, Profile, Series
from compile_lens.record.capture import Record
from compile_lens.record.messages import first_names
from compile_lens.record.missing import by_reason

from ..document import NAME, NUMBER, TEXT, Finding, Prose, Row, Section, Table, cut
from ..words import quantities
from ..words.labels import place, places
from ..words.program import measured
from ..words.quantities import plural
from .places import size

KEY, TITLE = "benchmark", "Benchmark"
INTRO = "Times that were measured, each way to run the function, interleaved with the others."
WHERE = "capture.benchmark"
MISSING = "not run: compile_lens.benchmark(f, x)"


def benchmark(capture: Record) -> Finding | None:
    """Return the finding; None if no code was generated."""
    measured = capture.benchmark
    if measured is None:
        if not any(c.code for c in capture.compilations):
            return None
        return Finding(KEY, TITLE, INTRO, where=WHERE, missing=MISSING)
    sections: list[Section] = []
    for what in _kinds(measured):
        sections.append(_table(measured, what))
    rest = tuple(f"{what}: {text}" if what else text for what, text in timing.conclusions(measured))
    if rest:
        sections.append(Prose("what follows", rest))
    brief = (*(_medians(measured, what) for what in _kinds(measured)), *rest)
    speed = _speed(measured)
    fact = f"{speed} eager's speed" if speed else quantities.plural(len(measured.series), "series", "series")
    return Finding(KEY, TITLE, INTRO, fact, brief, WHERE, tuple(sections), badge=speed)


def _kinds(measured: Benchmark) -> tuple[str, ...]:
    return tuple(dict.fromkeys(series.phases for series in measured.series))


def _medians(measured: Benchmark, what: str) -> str:
    own = (s for s in measured.series if s.phases == what)
    medians = ", ".join(f"{s.name} {timing.seconds_text(timing.spread(s.seconds).median)}" for s in own)
    return f"{what}: {medians}"


def _speed(measured: Benchmark) -> str:
    for what in _kinds(measured):
        eager = timing.find(measured, timing.EAGER, what)
        compiled = timing.find(measured, timing.COMPILED, what)
        if eager is not None and compiled is not None:
            return f"{timing.ratio(eager, compiled).median:.2f}×"
    return ""


def _table(measured: Benchmark, what: str) -> Table:
    eager = timing.find(measured, timing.EAGER, what)
    rows = [_row(series, eager) for series in measured.series if series.phases == what]
    head = ("", "median", "quartiles", "of eager's speed", "moves", "per second", "launches")
    kinds = (NAME, NUMBER, NUMBER, NUMBER, NUMBER, NUMBER, NUMBER)
    rounds = quantities.plural(max(len(s.seconds) for s in measured.series if s.phases == what), "round")
    words = (f"{rounds} on {measured.device}, {measured.clock}. Times are measured, bytes modelled.",)
    return Table(what, head, kinds, tuple(rows), words, where=WHERE)


def _row(series: Series, eager: Series | None) -> Row:
    time = timing.spread(series.seconds)
    rate = timing.bandwidth(series)
    times = ""
    if eager is not None and series is not eager:
        times = f"{timing.ratio(eager, series).median:.2f}×"
    launches = "" if series.launches is None else f"{series.launches:,}"
    if series.profiled_kernels is not None:
        launches += f" (profiler: {series.profiled_kernels:,})"
    return Row(
        (
            series.name,
            timing.seconds_text(time.median),
            f"{timing.seconds_text(time.low)} – {timing.seconds_text(time.high)}",
            times,
            size(series.nbytes),
            quantities.NOT_KNOWN if rate is None else timing.rate_text(rate),
            launches,
        )
    )


PROFILE_KEY, PROFILE_TITLE = "profile", "Profile"
PROFILE_WHERE = "capture.profile"
_ROWS = 500
_SLOWEST = 3
"""Maximum kernels named in a short text."""

_HEAD = ("kernel", "launches", "in all", "share", "median", "shortest", "longest", "from", "module")
_KINDS = (NAME, NUMBER, NUMBER, NUMBER, NUMBER, NUMBER, NUMBER, TEXT, NAME)


def profile(capture: Record) -> Finding | None:
    """Return the finding on the profile of a capture; None if it has none."""
    return None if capture.profile is None else finding(capture.profile, PROFILE_WHERE, Chain(capture))


def finding(profile: Profile, where: str, chain: Container[Address] = ()) -> Finding:
    """Return the finding on a profile of a capture or a program; rows link to addresses in ``chain``."""
    joined = sum(len(graph.kernels) for graph in profile.graphs)
    fact = f"{plural(joined, 'kernel')} measured" if joined else measured(profile)
    sections: list[Section] = [_profile_table(graph, where, chain) for graph in profile.graphs]
    sections += _everything(profile, where)
    lacking = [Row((missing.stage, missing.reason)) for missing in profile.missing]
    lacking += [
        Row((f"{_title(graph)}: {first_names(stages)}", why))
        for graph in profile.graphs
        for why, stages in by_reason(graph.missing).items()
    ]
    if lacking:
        rows, left = cut(lacking, _ROWS)
        sections.append(Table("not joined", ("what", "why"), (TEXT, TEXT), rows, (), left, where))
    if profile.calls:
        sections = [_side_by_side(profile), *_rolled_up(profile, where), *sections]
        intro = f"Times of each launch of the built code, by {profile.source}. A share is of all launches."
    else:
        intro = (
            f"Times that torch.profiler measured, from {profile.source}. "
            + (
                "Of kernels: on the GPU. "
                if profile.device != "cpu"
                else "The profiler's own marks are in them, which weigh on what takes microseconds. "
            )
            + ("A share is of the kernels that are joined." if joined else "")
        ).strip()
    brief = tuple(
        f"{_title(graph)}: "
        + (
            f"{seconds_text(sum(k.seconds for k in graph.kernels))} in kernels, "
            if graph.kernels
            else "not joined, "
        )
        + f"{plural(graph.calls, 'call')} of {seconds_text(graph.seconds)}"
        for graph in profile.graphs
        if graph.kernels or not joined
    )
    if profile.calls:
        brief = _in_one_call(profile)
    return Finding(PROFILE_KEY, PROFILE_TITLE, intro, fact, brief, where, tuple(sections))


def _parts(profile: Profile) -> dict[str, float]:
    """Return the wall time of the calls, that of the wrappers in them, and that of their launches, in seconds."""
    return {
        "the call, wall time": profile.seconds,
        "generated wrappers": sum(graph.seconds for graph in profile.graphs),
        "their launches": sum(kernel.seconds for graph in profile.graphs for kernel in graph.kernels),
    }


def _in_one_call(profile: Profile) -> tuple[str, ...]:
    """Return the times of one call in a few lines, with the slowest kernels last."""
    parts = [f"{name} {seconds_text(seconds / profile.calls)}" for name, seconds in _parts(profile).items()]
    kernels = sorted((k for g in profile.graphs for k in g.kernels), key=lambda kernel: -kernel.seconds)
    slowest = [
        f"{kernel.kernel} {seconds_text(kernel.seconds / profile.calls)}" for kernel in kernels[:_SLOWEST]
    ]
    return (", ".join(parts), f"most in {', '.join(slowest)}") if slowest else (", ".join(parts),)


def _side_by_side(profile: Profile) -> Table:
    """Return the table of the wall times of a call, of its wrappers, of their launches, and of eager's operators."""
    rows = [
        Row((name, seconds_text(seconds / profile.calls), _share(seconds, profile.seconds)))
        for name, seconds in _parts(profile).items()
    ]
    eager = sum(one.seconds for one in profile.operators)
    rows.append(Row(("eager's operators, by torch.profiler", seconds_text(eager), "")))
    words = (f"{plural(profile.calls, 'call')}; the mean of one.",)
    return Table("", ("", "seconds", "of the wall time"), (TEXT, NUMBER, NUMBER), tuple(rows), words)


def _share(seconds: float, whole: float) -> str:
    return f"{seconds / whole:.0%}" if whole else ""


def _rolled_up(profile: Profile, where: str) -> list[Table]:
    """Return tables of the seconds of each Python line and of each module."""
    whole = sum(kernel.seconds for graph in profile.graphs for kernel in graph.kernels)
    words = ("A kernel of several counts for each of them in full, so shares may add up to more than 100 %.",)
    tables = []
    lines = [
        (f"{place(frame)}  {frame.text}".strip(), seconds) for frame, seconds in by_line(profile).items()
    ]
    for title, what, times in (
        ("by line", "line", lines),
        ("by module", "module", list(by_module(profile).items())),
    ):
        rows = [
            Row((name, seconds_text(seconds / profile.calls), _share(seconds, whole)))
            for name, seconds in times
        ]
        if rows:
            shown, left = cut(rows, _ROWS)
            tables.append(
                Table(
                    title, (what, "in one call", "share"), (TEXT, NUMBER, NUMBER), shown, words, left, where
                )
            )
    return tables


def _everything(profile: Profile, where: str) -> list[Table]:
    """Return tables of the compiled regions, and of all that ran on the device, or only on the host."""
    tables = []
    if profile.regions:
        regions = []
        # A host-only trace has no launches, which does not mean that a device had none.
        width = 5 if profile.kernels or any(region.launches for region in profile.regions) else 3
        for region in profile.regions:
            launches, seconds = f"{region.launches:,}", region.device_seconds
            on_device = quantities.NOT_KNOWN if seconds is None else seconds_text(seconds)
            cells = (region.id, f"{region.calls:,}", seconds_text(region.seconds), launches, on_device)
            regions.append(Row(cells[:width]))
        shown, left = cut(regions, _ROWS)
        head = ("id", "calls", "on the host", "launches", "on the device")
        kinds = (NAME, NUMBER, NUMBER, NUMBER, NUMBER)
        tables.append(Table("compiled regions", head[:width], kinds[:width], shown, (), left, where))
    everything = profile.kernels or profile.operators
    whole = sum(one.seconds for one in everything)
    events = []
    for one in everything:
        share = f"{one.seconds / whole:.0%}" if whole else ""
        events.append(Row((one.name, f"{one.count:,}", seconds_text(one.seconds), share)))
    if events:
        title = "on the device" if profile.kernels else "operators of eager" if profile.calls else "operators"
        shown, left = cut(events, _ROWS)
        columns = ("name", "times", "in all", "share")
        tables.append(Table(title, columns, (NAME, NUMBER, NUMBER, NUMBER), shown, (), left, where))
    return tables


def _title(graph: MeasuredGraph) -> str:
    own = " ".join(x for x in (graph.id, graph.phase) if x) or "of no known compilation"
    other = f" (in the record {graph.compilation})" if graph.compilation not in ("", graph.id) else ""
    return f"{own}{other}"


def _profile_table(graph: MeasuredGraph, where: str, chain: Container[Address]) -> Table:
    whole = sum(kernel.seconds for kernel in graph.kernels)
    rows = [_profile_row(graph, kernel, whole, chain) for kernel in graph.kernels]
    rows += [
        Row((other.name, f"{other.count:,}", seconds_text(other.seconds), "", "", "", "", "not joined", ""))
        for other in graph.unmatched_events
    ]
    shown, left = cut(rows, _ROWS)
    words = [f"{plural(graph.calls, 'call')}, {seconds_text(graph.seconds)} on the host"]
    if graph.launches:
        words.append(f"{plural(graph.launches, 'launch', 'launches')} on the device")
    if any(kernel.matched_by == BY_ORDER for kernel in graph.kernels):
        words.append(
            "library calls are distinguished by the order of the launches, generated kernels by their names"
        )
    return Table(_title(graph), _HEAD, _KINDS, shown, tuple(words), left, where)


def _profile_row(
    graph: MeasuredGraph, kernel: MeasuredKernel, whole: float, chain: Container[Address]
) -> Row:
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
            first_names(kernel.modules) if kernel.modules else "",
        ),
        (address,) if address in chain else (),
    )


def _from(kernel: MeasuredKernel) -> str:
    origins: Iterable[str] = (
        first_names(kernel.nodes) if kernel.nodes else "",
        places(kernel.lines) if kernel.lines else "",
    )
    return " ← ".join(x for x in origins if x)
