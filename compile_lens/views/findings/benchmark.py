"""What was measured: times of each way to run the function, their spread, and what follows from them."""

from __future__ import annotations

from collections.abc import Iterator

from compile_lens.measures import timing
from compile_lens.record.benchmark import Benchmark, Series
from compile_lens.record.capture import Record

from ..document import NAME, NUMBER, Finding, Prose, Row, Section, Table
from ..words import quantities
from .places import size

KEY, TITLE = "benchmark", "Benchmark"
INTRO = "Times that were measured, each way to run the function in turn with the others."
WHERE = "capture.benchmark"
MISSING = "not run: compile_lens.benchmark(f, x)"


def benchmark(capture: Record) -> Finding | None:
    """The finding; ``None`` where no code was generated."""
    measured = capture.benchmark
    if measured is None:
        if not any(c.code for c in capture.compilations):
            return None
        return Finding(KEY, TITLE, INTRO, where=WHERE, missing=MISSING)
    sections: list[Section] = []
    for what in _kinds(measured):
        sections.append(_table(measured, what))
    rest = tuple(_follows(measured))
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
    said = ", ".join(f"{s.name} {timing.seconds_text(timing.spread(s.seconds).median)}" for s in own)
    return f"{what}: {said}"


def _follows(measured: Benchmark) -> Iterator[str]:
    """What the words say beyond the tables, each line with what it is about."""
    heads = tuple(f"{what}: " for what in _kinds(measured))
    names = tuple(series.name for series in measured.series)
    about = ""
    for line in timing.words(measured):
        said = line.strip()
        if said.startswith(heads):
            about = said[: said.index(": ") + 2]
        elif not said:
            about = ""
        elif not said.startswith((*names, "on ")):
            yield about + said


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
            "—" if rate is None else timing.rate_text(rate),
            launches,
        )
    )
