"""Times of each kernel, line and module of a call, with a clock around each launch."""

from __future__ import annotations

import inspect
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from full_text import full

import compile_lens
from compile_lens import UsageError
from compile_lens.measures.profile import by_line, by_module
from compile_lens.record.benchmark import Profile
from compile_lens.views.findings.benchmark import profile as findings_of_profile

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]

SECONDS = 0.02


@torch.library.custom_op("compile_lens_kernel_times::slow", mutates_args=())
def slow(x: torch.Tensor) -> torch.Tensor:
    time.sleep(SECONDS)
    return x * 2


@slow.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


class Sleeper(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return slow(x)


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.sleeper = Sleeper()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x).relu()
        return self.sleeper(y).sin() + 1


@pytest.fixture(scope="module")
def profile() -> Profile:
    net, x = Net(), torch.rand(4, 8)
    with torch.no_grad():
        capture = compile_lens.benchmark(
            net, x, ablations=False, seconds=0.3, by="kernel", show_progress=False
        )
    assert capture.profile is not None
    return capture.profile


@pytest.mark.full
def test_the_slow_operator_is_the_slow_kernel(profile: Profile) -> None:
    (graph,) = profile.graphs
    slowest = max(graph.kernels, key=lambda kernel: kernel.seconds)
    assert "compile_lens_kernel_times.slow" in slowest.kernel
    assert SECONDS <= slowest.min_seconds <= slowest.median_seconds <= slowest.max_seconds
    assert slowest.modules == ("sleeper",) and {f.text for f in slowest.lines} == {"return slow(x)"}
    assert next(iter(by_line(profile))).text == "return slow(x)"
    assert next(iter(by_module(profile))) == "sleeper"


@pytest.mark.full
def test_launches_lie_within_wrappers_and_these_within_calls(profile: Profile) -> None:
    (graph,) = profile.graphs
    assert profile.calls >= 7 and graph.calls == profile.calls and graph.missing == ()
    assert all(kernel.launches == profile.calls for kernel in graph.kernels)
    launches = sum(kernel.seconds for kernel in graph.kernels)
    assert SECONDS * profile.calls <= launches <= graph.seconds <= profile.seconds
    assert any(one.name == "aten::sin" for one in profile.operators)


@pytest.mark.exhaustive
def test_the_gradient_is_timed_too_and_shown(tmp_path: Path) -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return (x.sin() @ x.t()).sum()

    x = torch.rand(8, 8, requires_grad=True)
    capture = compile_lens.benchmark(f, x, ablations=False, seconds=0.1, by="kernel", show_progress=False)
    profile = capture.profile
    assert profile is not None and x.grad is None
    assert [graph.phase for graph in profile.graphs] == ["forward", "backward"]
    assert {k.kernel for g in profile.graphs for k in g.kernels} == {k.name for k in capture.kernels}
    text = " ".join(full(capture).split())
    assert "the call, wall time" in text and "most in" in text
    finding = findings_of_profile(capture)
    assert finding is not None and [getattr(s, "title", "") for s in finding.sections] == [
        "", "by line", "0/0 forward", "0/0 backward", "operators of eager"
    ]  # fmt: skip
    assert compile_lens.load(capture.save(tmp_path / "c.json")).profile == profile


@pytest.mark.exhaustive
def test_a_clock_leaves_the_text_of_the_code_alone() -> None:
    x = torch.rand(8)
    capture = compile_lens.benchmark(lambda x: x.sin() + 1, x, ablations=False, seconds=0.1, by="kernel")
    assert not any("compile_lens" in text for text in capture.code.values())


def test_bad_input() -> None:
    with pytest.raises(UsageError, match="by='line' is not one of None, 'kernel'"):
        compile_lens.benchmark(lambda x: x + 1, torch.rand(8), by="line")


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Limits each launch to one thread: several would wait for each other on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def towers(order: tuple[int, ...]) -> tuple[Any, tuple[torch.Tensor, ...]]:
    """Return a function with a product on each of four lines, in an order of sizes, and its inputs."""
    a, b, c, d = (128 * 2**n for n in order)

    def f(w: torch.Tensor, x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        first = (w @ w.t()).sin().sum()
        second = (x @ x.t()).cos().sum()
        third = (y @ y.t()).exp().sum()
        fourth = (z @ z.t()).tanh().sum()
        return first + second + third + fourth

    return f, tuple(torch.rand(size, 512) / 32 for size in (a, b, c, d))


def traced(f: Any, inputs: tuple[torch.Tensor, ...]) -> dict[int, float]:
    """Return the times in torch's own trace, keyed by the number of rows of a product."""
    torch._dynamo.reset()
    compiled = torch.compile(f)
    compiled(*inputs)
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True
    ) as trace:
        for _ in range(10):
            compiled(*inputs)
    torch._dynamo.reset()
    events = [one for one in trace.key_averages(group_by_input_shape=True) if one.key == "aten::mm"]
    return {one.input_shapes[0][0]: one.cpu_time_total for one in events}


@pytest.mark.exhaustive
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (1, 3, 0, 2), (2, 0, 3, 1), (0, 3, 1, 2)])
def test_the_most_expensive_lines_are_those_of_a_trace_and_the_times_add_up(
    order: tuple[int, ...], one_thread: None
) -> None:
    f, inputs = towers(order)
    times = traced(f, inputs)
    assert len(times) == 4
    texts = [line.strip() for line in inspect.getsource(f).splitlines() if "@" in line]
    of_rows = {x.shape[0]: text for x, text in zip(inputs, texts, strict=True)}
    capture = compile_lens.benchmark(
        f, *inputs, ablations=False, seconds=1.0, by="kernel", show_progress=False
    )
    profile = capture.profile
    assert profile is not None and profile.seconds / profile.calls > 1e-3
    expected = [of_rows[rows] for rows in sorted(times, key=times.__getitem__, reverse=True)]
    # The sum of the last line is in a shared kernel, which the trace does not divide.
    assert [line.text for line in by_line(profile) if line.text in texts][:3] == expected[:3]
    # The launches and the wrapper's own time, against the wall time of the calls.
    within = sum(graph.seconds for graph in profile.graphs)
    assert 0.9 * profile.seconds <= within <= profile.seconds
    assert all(sum(kernel.seconds for kernel in graph.kernels) <= graph.seconds for graph in profile.graphs)
