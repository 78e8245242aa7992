"""Times in figures and words: medians with their spread, ratios by round, bytes per second, break-even.

All figures are computed from the samples in the record. Times are *measured*; bytes are the ledger's and *modelled*, so
bytes per second combine a measured time with modelled traffic.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from dataclasses import dataclass

from compile_lens.record.benchmark import BOTH, FORWARD, Benchmark, Series

EAGER, COMPILED = "eager", "compiled"


@dataclass(frozen=True)
class Spread:
    """Median and quartiles of a set of figures: half of the figures lie between low and high."""

    median: float
    low: float
    high: float

    @property
    def relative(self) -> float:
        """Distance of the quartiles as a share of the median: 0.1 is 10 %."""
        return (self.high - self.low) / self.median if self.median else math.inf


@dataclass(frozen=True)
class BreakEven:
    """Number of calls after which compiling has paid for itself; ``calls`` is ``None`` for never.

    ``compile_seconds`` is the whole compile; ``saved`` is the seconds saved per call, negative if compiled is slower.
    """

    phases: str
    calls: int | None
    compile_seconds: float
    saved: float


def spread(figures: tuple[float, ...]) -> Spread:
    """Return median and quartiles (the inclusive method); raise ``ValueError`` without figures."""
    if not figures:
        raise ValueError("the spread of no figures")
    if len(figures) == 1:
        return Spread(figures[0], figures[0], figures[0])
    low, median, high = statistics.quantiles(figures, n=4, method="inclusive")
    # Interpolation between neighbouring floats may be rounded past either of them.
    median = min(max(median, min(figures)), max(figures))
    return Spread(median, min(max(low, min(figures)), median), max(min(high, max(figures)), median))


def ratio(slow: Series, fast: Series) -> Spread:
    """Return the ratio of ``slow`` to ``fast``: median and quartiles of the quotients of all rounds.

    Both must have been measured in alternation (same ``phases``), so that a disturbance of a round affects both.
    """
    if slow.phases != fast.phases or len(slow.seconds) != len(fast.seconds):
        raise ValueError(f"{slow.name} ({slow.phases}) and {fast.name} ({fast.phases}) did not alternate")
    return spread(tuple(a / b for a, b in zip(slow.seconds, fast.seconds, strict=True)))


def bandwidth(series: Series) -> float | None:
    """Return modelled bytes of one call over its measured median time, in bytes per second; ``None`` if unknown."""
    time = spread(series.seconds).median
    return None if series.nbytes is None or not time else series.nbytes / time


def find(benchmark: Benchmark, name: str, what: str = FORWARD) -> Series | None:
    """Return a series by its name, ``None`` if it was not measured."""
    return next((s for s in benchmark.series if s.name == name and s.phases == what), None)


def compile_time(benchmark: Benchmark) -> float:
    """Return the wall time of the compile in seconds: the sum of its stages."""
    return sum(seconds for _, seconds in benchmark.compile_seconds)


def break_even(benchmark: Benchmark, what: str = FORWARD) -> BreakEven | None:
    """Return the number of calls after which eager takes as long as compiling and running compiled code.

    The saving is the median of the differences of all rounds. ``None`` if either was not timed.
    """
    eager, compiled = find(benchmark, EAGER, what), find(benchmark, COMPILED, what)
    if eager is None or compiled is None:
        return None
    saved = statistics.median(a - b for a, b in zip(eager.seconds, compiled.seconds, strict=True))
    spent = compile_time(benchmark)
    return BreakEven(what, math.ceil(spent / saved) if saved > 0 else None, spent, saved)


def disagreements(benchmark: Benchmark) -> tuple[str, ...]:
    """Return a sentence for each series whose number of profiled kernels differs from the ledger's launches.

    Eager is left out: one operator may launch several kernels.
    """
    return tuple(
        f"{s.name}, {s.phases}: the profiler saw {s.profiled_kernels} kernels, the ledger has {s.launches} launches"
        for s in benchmark.series
        if s.name != EAGER
        and None not in (s.profiled_kernels, s.launches)
        and s.profiled_kernels != s.launches
    )


# Words ---------------------------------------------------------------------------------------------------------


def words(benchmark: Benchmark) -> tuple[str, ...]:
    """Return the benchmark as lines of text: tables for forward and forward+backward, each with its conclusions."""
    lines = [f"on {benchmark.device}, {benchmark.clock}"]
    for what in (FORWARD, BOTH):
        own = [s for s in benchmark.series if s.phases == what]
        if own:
            lines += ["", *_table(what, own, benchmark)]
            lines += [f"  {text}" for phases, text in conclusions(benchmark) if phases == what]
    rest = [text for phases, text in conclusions(benchmark) if not phases]
    return (*lines, *([""] if benchmark.compile_seconds else []), *rest)


def conclusions(benchmark: Benchmark) -> Iterator[tuple[str, str]]:
    """Yield conclusions from the times as pairs of the phases (``""`` for the whole) and a sentence."""
    for what in (FORWARD, BOTH):
        even = break_even(benchmark, what)
        if even is not None:
            yield what, _break_even_words(even)
    if benchmark.compile_seconds:
        longest = sorted(benchmark.compile_seconds, key=lambda pair: -pair[1])[:4]
        parts = ", ".join(f"{name} {seconds_text(s)}" for name, s in longest)
        yield (
            "",
            f"compile: {seconds_text(compile_time(benchmark))} without caches, while recorded (longest: {parts})",
        )
    speed = benchmark.speed
    if speed is not None:
        how = "measured" if speed.measured else "from a table"
        yield "", f"a large copy moves {rate_text(speed.bandwidth)} here ({how})"
    yield from (("", f"DISAGREE: {text}") for text in disagreements(benchmark))
    yield from (("", f"note: {text}") for text in benchmark.notes)


def _table(what: str, own: list[Series], benchmark: Benchmark) -> list[str]:
    eager = next((s for s in own if s.name == EAGER), None)
    width = max(len(s.name) for s in own)
    rounds, calls = len(own[0].seconds), own[0].calls
    lines = [f"{what}: {rounds} rounds of {calls} call{'' if calls == 1 else 's'}, median [quartiles]"]
    for s in own:
        time = spread(s.seconds)
        parts = [f"{seconds_text(time.median)} [{seconds_text(time.low)} to {seconds_text(time.high)}]"]
        if eager is not None and s is not eager:
            gain = ratio(eager, s)
            parts.append(f"{gain.median:.2f}x eager's speed [{gain.low:.2f} to {gain.high:.2f}]")
        moved = bandwidth(s)
        if moved is not None:
            parts.append(_rate_words(moved, benchmark))
        if s.launches is not None:
            unit = "operator" if s.name == EAGER else "launch"
            plural = unit if s.launches == 1 else {"operator": "operators", "launch": "launches"}[unit]
            seen = "" if s.profiled_kernels is None else f" ({s.profiled_kernels} kernels profiled)"
            parts.append(f"{s.launches} {plural}{seen}")
        lines.append(f"  {s.name:<{width}}  {'; '.join(parts)}")
    return lines


def _rate_words(moved: float, benchmark: Benchmark) -> str:
    text = f"{rate_text(moved)} of modelled traffic"
    if benchmark.speed is None or not benchmark.speed.bandwidth:
        return text
    share = moved / benchmark.speed.bandwidth
    if share > 1:
        return f"{text}, {share:.1f} times a large copy's: caches serve part of it"
    return f"{text}, {f'{share:.0%}' if share >= 0.01 else 'under 1%'} of a large copy's"


def _break_even_words(even: BreakEven) -> str:
    if even.calls is None:
        return (
            f"break-even: never: compiled is not faster (it takes {seconds_text(-even.saved)} more per call)"
        )
    return (
        f"break-even: after {even.calls:,} calls ({seconds_text(even.compile_seconds)} of compiling, "
        f"{seconds_text(even.saved)} saved per call)"
    )


def seconds_text(seconds: float) -> str:
    """Return a time with three significant digits in a suitable unit."""
    for limit, factor, unit in ((1e-6, 1e9, "ns"), (1e-3, 1e6, "µs"), (1, 1e3, "ms")):
        if abs(seconds) < limit:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds:.3g} s" if abs(seconds) < 1000 else f"{seconds:,.0f} s"


def rate_text(rate: float) -> str:
    """Return bytes per second with a decimal unit (GB is 10^9 bytes)."""
    for limit, factor, unit in ((1e6, 1e3, "kB/s"), (1e9, 1e6, "MB/s"), (1e12, 1e9, "GB/s")):
        if rate < limit:
            return f"{rate / factor:.3g} {unit}"
    return f"{rate / 1e12:.3g} TB/s"
