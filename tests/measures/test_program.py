"""Figures of a whole program, from a record made by hand."""

from __future__ import annotations

import dataclasses

import pytest
import samples

from compile_lens.measures.program import compile_seconds, counts
from compile_lens.record import claims
from compile_lens.record.missing import Missing
from compile_lens.record.program import CompileEvent, ProgramRecord


def test_time_that_two_threads_spend_at_once_passes_once() -> None:
    """Torch builds kernels in separate threads while the compile that waits for them continues."""
    events = (
        CompileEvent("dynamo", 1e6, 4e6, thread=0),
        CompileEvent("backend_compile", 2e6, 2e6, thread=0, depth=1),
        CompileEvent("compile_file", 2.5e6, 3e6, thread=1),
        CompileEvent("compile_file", 2.5e6, 1e6, thread=2),
        CompileEvent("cache_hit", 3e6, thread=0, depth=1),
        CompileEvent("dynamo", 9e6, 0.5e6, thread=0),
    )
    program = ProgramRecord("train.py", samples.sample().environment, events=events)
    assert compile_seconds(program) == pytest.approx(4.5 + 0.5)


@pytest.mark.parametrize(
    ("claim", "names"),
    [
        (claims.BREAKS, {"breaks", "break_sites", "partly_compiled"}),
        (claims.RECOMPILES, {"recompiles"}),
        (claims.LIMITS, {"at_limit"}),
        (claims.SKIP_REASONS, {"skipped", "permanently_eager"}),
        (claims.AHEAD, {"ahead"}),
        (claims.TIMES, set()),
    ],
)
def test_a_count_of_what_was_not_all_observed_is_a_lower_bound(claim: str, names: set[str]) -> None:
    environment = samples.sample().environment
    program = ProgramRecord("train.py", environment, missing=(Missing(claim, "a hook was lost"),))
    assert counts(ProgramRecord("train.py", environment)).at_least == ()
    assert set(counts(program).at_least) == names


def test_without_frame_evaluations_no_count_of_them_is_whole() -> None:
    missing = (Missing(claims.EVALUATIONS, "a hook was lost"),)
    own = counts(ProgramRecord("train.py", samples.sample().environment, missing=missing))
    assert {field.name for field in dataclasses.fields(own)} - set(own.at_least) == {
        "ahead",
        "modules",
        "at_least",
    }
