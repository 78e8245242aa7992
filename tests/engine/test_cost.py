"""What the reasons cost: with everything recorded, a capture takes at most a tenth more than with the stages only."""

from __future__ import annotations

import cProfile
import pstats
from typing import Any

import pytest
import torch
from gpt2 import TINY, example
from reasons import stages_only

from compile_lens import capture

pytestmark = pytest.mark.torch


def wave(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) ** 2 + torch.cos(x) ** 2


def calls(fn: Any, args: tuple[Any, ...]) -> int:
    """Calls of functions that a capture makes: as many on a slow or busy machine as on any other."""
    profile = cProfile.Profile()
    profile.runcall(capture, fn, *args)
    made: int = pstats.Stats(profile).total_calls  # type: ignore[attr-defined]
    return made


def ratio(fn: Any, args: tuple[Any, ...]) -> float:
    """Calls of a capture, by those of one with the stages only."""
    capture(fn, *args)  # what is made once in a process is made here
    with stages_only():
        part = calls(fn, args)
    return calls(fn, args) / part


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


def test_reasons_cost_little() -> None:
    """In the calls that they make; the benchmark ``reasons`` has the time."""
    assert 1 < ratio(wave, (torch.rand(1000, requires_grad=True),)) <= 1.10


@pytest.mark.slow
def test_reasons_cost_little_in_a_transformer() -> None:
    model, inputs = example(TINY)
    assert 1 < ratio(model, inputs) <= 1.10
