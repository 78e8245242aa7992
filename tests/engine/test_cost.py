"""What a capture costs beside torch, and what the reasons cost beside the stages: in calls of functions."""

from __future__ import annotations

import cProfile
import importlib.util
import pstats
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from gpt2 import TINY, example
from reasons import stages_only

from compile_lens import capture

pytestmark = pytest.mark.torch


def wave(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) ** 2 + torch.cos(x) ** 2


def calls(fn: Any, args: tuple[Any, ...], work: Callable[..., Any] = capture) -> int:
    """Calls of functions that a capture makes: as many on a slow or busy machine as on any other."""
    profile = cProfile.Profile()
    profile.runcall(work, fn, *args)
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


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    """``benchmarks/capture.py``, which has torch's own Dynamo and lowering alone."""
    found = sys.modules.get("compile_lens_benchmark")
    if found is None:
        path = Path(__file__).resolve().parents[2] / "benchmarks" / "capture.py"
        spec = importlib.util.spec_from_file_location("compile_lens_benchmark", path)
        assert spec is not None and spec.loader is not None
        found = sys.modules["compile_lens_benchmark"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(found)
    return found


def beside_torch(benchmark: ModuleType, fn: Any, args: tuple[Any, ...]) -> float:
    """Calls of a capture, by those of torch's own Dynamo and lowering of the same function."""
    for work in (capture, benchmark.with_room):
        work(fn, *args)  # what is made once in a process is made here
    return calls(fn, args) / calls(fn, args, benchmark.with_room)


@pytest.mark.slow
def test_a_capture_costs_little_beside_torch(benchmark: ModuleType) -> None:
    """A transformer of two layers; the benchmark ``gpt2`` has the time."""
    model, inputs = example(TINY)
    assert 1 < beside_torch(benchmark, model, inputs) <= 1.09


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "count", "most"),
    [("chain", 100, 1.3), ("fan_out", 100, 1.3), ("broken", 16, 1.3)],
)
def test_no_shape_of_a_program_is_dear(benchmark: ModuleType, shape: str, count: int, most: float) -> None:
    fn, args = getattr(benchmark, shape)(count)
    assert 1 < beside_torch(benchmark, fn, args) <= most
