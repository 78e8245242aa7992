"""Times in figures and words: medians, quartiles, ratios of each round, bytes per second, break-even."""

from __future__ import annotations

import dataclasses
import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compile_lens.measures import timing
from compile_lens.record.benchmark import BOTH, FORWARD, Benchmark, DeviceSpeed, Series


def series(name: str, *seconds: float, what: str = FORWARD, **more: int | None) -> Series:
    return Series(name, what, seconds, **more)  # type: ignore[arg-type]


EAGER = series("eager", 4e-3, 8e-3, 6e-3, 10e-3, 5e-3, nbytes=44_000, launches=5)
COMPILED = series("compiled", 2e-3, 4e-3, 2e-3, 5e-3, 5e-3, nbytes=8_000, launches=1)
BENCHMARK = Benchmark(
    (EAGER, COMPILED), "cpu, 2 threads", "monotonic clock", 3, (("dynamo", 0.5), ("forward.build", 1.5))
)


def test_spread_is_median_and_quartiles() -> None:
    found = timing.spread((5.0, 1.0, 3.0, 2.0, 4.0))
    assert (found.low, found.median, found.high) == (2.0, 3.0, 4.0)
    assert found.relative == pytest.approx(2 / 3)


def test_spread_of_one_figure_and_of_none() -> None:
    assert timing.spread((7.0,)) == timing.Spread(7.0, 7.0, 7.0)
    with pytest.raises(ValueError, match="no figures"):
        timing.spread(())


@given(st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=60))
def test_spread_is_ordered_and_inside(figures: list[float]) -> None:
    found = timing.spread(tuple(figures))
    assert min(figures) <= found.low <= found.median <= found.high <= max(figures)
    assert found.median == pytest.approx(statistics.median(figures))


@given(st.floats(1e-9, 1e3), st.lists(st.integers(0, 3), min_size=1, max_size=9))
def test_spread_of_neighbours_is_ordered_and_inside(figure: float, steps: list[int]) -> None:
    """The floats differ by a few roundings."""
    ladder = [figure]
    for _ in range(3):
        ladder.append(math.nextafter(ladder[-1], math.inf))
    figures = [ladder[step] for step in steps]
    found = timing.spread(tuple(figures))
    assert min(figures) <= found.low <= found.median <= found.high <= max(figures)


def test_ratio_is_taken_round_by_round() -> None:
    # The ratio of the medians would be 6/4 = 1.5.
    assert timing.ratio(EAGER, COMPILED).median == 2.0
    assert timing.ratio(EAGER, EAGER) == timing.Spread(1.0, 1.0, 1.0)


@given(st.lists(st.floats(1e-6, 1e-1), min_size=2, max_size=30), st.floats(0.1, 100))
def test_ratio_survives_a_machine_that_slows_down(speed: list[float], factor: float) -> None:
    slow = series("eager", *(s * factor for s in speed))
    found = timing.ratio(slow, series("compiled", *speed))
    assert found.low == pytest.approx(factor) and found.high == pytest.approx(factor)


def test_ratio_needs_series_that_took_turns() -> None:
    with pytest.raises(ValueError, match="did not alternate"):
        timing.ratio(EAGER, series("compiled", 1.0))
    with pytest.raises(ValueError, match="did not alternate"):
        timing.ratio(EAGER, dataclasses.replace(COMPILED, phases=BOTH))


def test_bandwidth_is_modelled_bytes_over_the_median() -> None:
    assert timing.bandwidth(EAGER) == pytest.approx(44_000 / 6e-3)
    assert timing.bandwidth(dataclasses.replace(EAGER, nbytes=None)) is None


def test_break_even() -> None:
    found = timing.break_even(BENCHMARK)
    assert found is not None
    # Savings of the rounds: 2, 4, 4, 5 and 0 ms, so the median is 4; 2 s of compiling take 500 calls to recover.
    assert (found.calls, found.compile_seconds) == (500, 2.0)
    assert found.saved == pytest.approx(4e-3)


def test_break_even_is_never_where_compiled_is_not_faster() -> None:
    turned = dataclasses.replace(
        BENCHMARK,
        series=(dataclasses.replace(EAGER, name="compiled"), dataclasses.replace(COMPILED, name="eager")),
    )
    found = timing.break_even(turned)
    assert found is not None and found.calls is None and found.saved < 0
    assert "never: compiled is not faster" in "\n".join(timing.words(turned))
    same = dataclasses.replace(BENCHMARK, series=(EAGER, dataclasses.replace(EAGER, name="compiled")))
    assert timing.break_even(same).calls is None  # type: ignore[union-attr]


def test_break_even_needs_both() -> None:
    assert timing.break_even(BENCHMARK, BOTH) is None
    assert timing.break_even(dataclasses.replace(BENCHMARK, series=(COMPILED,))) is None


def test_a_disagreement_with_the_profiler_is_shown() -> None:
    wrong = dataclasses.replace(COMPILED, profiled_kernels=3)
    right = dataclasses.replace(COMPILED, name="inlined", profiled_kernels=1)
    eager = dataclasses.replace(EAGER, profiled_kernels=9)
    unknown = dataclasses.replace(COMPILED, name="fused", profiled_kernels=4, launches=None)
    found = dataclasses.replace(BENCHMARK, series=(eager, wrong, right, unknown))
    assert timing.disagreements(found) == (
        "compiled, forward: the profiler saw 3 kernels, the ledger has 1 launches",
    )
    assert "DISAGREE: compiled, forward" in "\n".join(timing.words(found))


def test_words_say_each_figure_and_how_it_was_had() -> None:
    speed = DeviceSpeed("cpu", 10e6, 1e9, "float32", True)
    both = [dataclasses.replace(s, phases=BOTH, seconds=s.seconds[:3], calls=7) for s in (EAGER, COMPILED)]
    found = dataclasses.replace(
        BENCHMARK, series=(EAGER, COMPILED, *both), speed=speed, notes=("values drift",)
    )
    text = "\n".join(timing.words(found))
    for part in (
        "cpu, 2 threads, monotonic clock",
        "forward: 5 rounds of 1 call, median [quartiles]",
        "forward+backward: 3 rounds of 7 calls",
        "6 ms [5 ms to 8 ms]",
        "2.00x eager's speed [2.00 to 2.00]",
        "7.33 MB/s of modelled traffic, 73% of a large copy's",
        "5 operators",
        "1 launch",
        "after 500 calls (2 s of compiling, 4 ms saved per call)",
        "compile: 2 s without caches",
        "a large copy moves 10 MB/s here (measured)",
        "note: values drift",
    ):
        assert part in text, part


def test_traffic_faster_than_a_copy_is_not_called_a_share() -> None:
    speed = DeviceSpeed("cpu", 1e6, 1e9, "float32", True)
    text = "\n".join(timing.words(dataclasses.replace(BENCHMARK, speed=speed)))
    assert "7.3 times a large copy's: caches serve part of it" in text
    slow = dataclasses.replace(speed, bandwidth=1e12)
    assert "under 1% of a large copy's" in "\n".join(timing.words(dataclasses.replace(BENCHMARK, speed=slow)))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(2.5e-9, "2.5 ns"), (3.14159e-6, "3.14 µs"), (0.25, "250 ms"), (12.345, "12.3 s"), (4321, "4,321 s")],
)
def test_seconds_are_read_in_their_unit(seconds: float, text: str) -> None:
    assert timing.seconds_text(seconds) == text


@pytest.mark.parametrize(
    ("rate", "text"), [(5e3, "5 kB/s"), (1.5e8, "150 MB/s"), (2e10, "20 GB/s"), (4.8e12, "4.8 TB/s")]
)
def test_rates_are_read_in_their_unit(rate: float, text: str) -> None:
    assert timing.rate_text(rate) == text
