"""``program.what_if(fn)`` runs a function again in child processes, with the figures of plain torch."""

from __future__ import annotations

import os

import pytest
import torch

import compile_lens

pytestmark = [pytest.mark.torch, pytest.mark.slow]


def lengths() -> torch.Tensor:
    def scaled(x: torch.Tensor) -> torch.Tensor:
        return (x * 2).sum()

    compiled = torch.compile(scaled, backend="eager")
    return torch.stack([compiled(torch.ones(n)) for n in (4, 5, 6)])


def unlike_itself() -> int:
    lengths()
    return os.getpid()


def test_a_function_runs_with_each_setting() -> None:
    torch._dynamo.reset()
    with compile_lens.watch() as program:
        lengths()
    remedies = program.what_if(lengths).record.remedies
    assert remedies is not None and remedies.base is not None
    assert (remedies.base.graphs, remedies.base.recompiles) == (2, 1)
    assert [run.remedies[0].kind for run in remedies.runs] == ["dynamic", "mark_dynamic"]
    for run in remedies.runs:  # one graph for every size, as torch documents both
        assert run.figures is not None and (run.figures.graphs, run.figures.recompiles) == (1, 0)
        assert run.agrees is True and run.comparison == "the same value"
    assert program.record.remedies is None, "the program itself stays as it was"


@pytest.mark.full
def test_a_function_that_differs_by_itself_is_not_compared() -> None:
    torch._dynamo.reset()
    with compile_lens.watch() as program:
        lengths()
    remedies = program.what_if(unlike_itself).record.remedies
    assert remedies is not None
    assert {run.agrees for run in remedies.runs} == {None}
    assert "differ as well" in remedies.runs[0].comparison


def test_usage() -> None:
    with compile_lens.watch() as program:
        pass
    with pytest.raises(compile_lens.UsageError, match="time_limit=0"):
        program.what_if(lengths, time_limit=0)
    remedies = program.what_if(lengths).record.remedies
    assert remedies is not None and not remedies.runs and not remedies.count
