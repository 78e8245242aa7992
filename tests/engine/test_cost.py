"""Cost of a capture relative to torch, and of the reasons relative to the stages: in function calls."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from beside_torch import beside_torch, calls
from gpt2 import TINY, example
from reasons import stages_only

from compile_lens import capture

pytestmark = pytest.mark.torch


def wave(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) ** 2 + torch.cos(x) ** 2


def ratio(fn: Any, args: tuple[Any, ...]) -> float:
    """Number of calls in a capture, relative to a capture with the stages only."""
    capture(fn, *args)  # one-time setup of the process
    with stages_only():
        part = calls(fn, args, capture)
    return calls(fn, args, capture) / part


def test_the_stages_are_the_same_without_reasons() -> None:
    x = torch.rand(64, 8, requires_grad=True)
    whole = capture(torch.softmax, x, 1)
    with stages_only():
        part = capture(torch.softmax, x, 1)
    assert whole.decisions or whole.compilations[0].lowered
    assert whole.compilations[0].passes and whole.compilations[0].memory and whole.compilations[0].partition
    assert not part.decisions and not part.compilations[0].lowered and not part.compilations[0].passes
    assert not part.compilations[0].memory and part.compilations[0].partition is None
    assert not any(k.lines for k in part.kernels) and any(k.lines for k in whole.kernels)
    assert list(part.compilations[0].graphs) == list(whole.compilations[0].graphs)
    for key, graph in whole.compilations[0].graphs.items():
        assert graph == part.compilations[0].graphs[key]


@pytest.mark.full
def test_reasons_cost_little() -> None:
    """The cost is in function calls; the benchmark ``reasons`` has the time."""
    assert 1 < ratio(wave, (torch.rand(1000, requires_grad=True),)) <= 1.10


@pytest.mark.exhaustive
def test_reasons_cost_little_in_a_transformer() -> None:
    model, inputs = example(TINY)
    assert 1 < ratio(model, inputs) <= 1.10


@pytest.mark.full
@pytest.mark.parametrize(
    ("shape", "count", "most"),
    [
        ("chain", 20, 1.05),
        *(
            pytest.param(*figures, marks=pytest.mark.exhaustive)
            for figures in (
                ("layers", 2, 1.10),
                ("chain", 100, 1.15),
                ("fan_out", 100, 1.15),
                ("broken", 16, 1.15),
            )
        ),
    ],
)
def test_a_capture_costs_little_beside_torch(shape: str, count: int, most: float) -> None:
    """``layers`` are those of a transformer; the benchmarks ``gpt2`` and ``growth`` have the time."""
    assert 0.5 < beside_torch(shape, count) <= most
