"""A benchmark times what it reports, alternates between the variants, and leaves the user's objects unchanged."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch._inductor.config as inductor_config
from state import diff, snapshot
from torch import nn

from compile_lens import BuildError, Capture, CaptureError, UsageError, ablate, benchmark
from compile_lens.measures import timing
from compile_lens.measures.steps import at_step
from compile_lens.record.benchmark import BOTH, FORWARD, Benchmark
from compile_lens.record.capture import ABLATIONS
from compile_lens.trials.benchmark import ROUND_LIMITS, _differences, _load_note, _Measuring
from compile_lens.trials.result_gradients import ResultGradients
from compile_lens.trials.speed import Clock, clock_of, profiled

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]
builds = pytest.mark.skipif(not (shutil.which("g++") or shutil.which("clang++")), reason="no C++ compiler")
NOTHING, INLINED, FUSED = ABLATIONS
N = 512


def wave(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) * 2


def leaf(n: int = N) -> torch.Tensor:
    return torch.linspace(-1, 1, n).requires_grad_()


def measured(made: Capture) -> Benchmark:
    assert made.benchmark is not None
    return made.benchmark


def quiet(found: Benchmark) -> tuple[str, ...]:
    """Notes without the one about a busy machine."""
    return tuple(n for n in found.notes if "busy with other work" not in n)


@pytest.fixture(scope="module")
def made() -> Capture:
    return benchmark(wave, leaf(), seconds=0.2)


# One whole benchmark.
@pytest.mark.full
@builds
def test_every_way_took_turns(made: Capture) -> None:
    found = measured(made)
    assert [(s.name, s.phases) for s in found.series] == [
        (name, what) for what in (FORWARD, BOTH) for name in ("eager", NOTHING, INLINED, "compiled")
    ]
    for what in (FORWARD, BOTH):
        of = [s for s in found.series if s.phases == what]
        assert len({(len(s.seconds), s.calls) for s in of}) == 1
        assert all(len(s.seconds) >= ROUND_LIMITS[0] and min(s.seconds) > 0 for s in of)
        fastest = min(timing.spread(s.seconds).median for s in of)
        assert fastest * of[0].calls >= 0.2e-3  # a sample is far longer than the clock's resolution


@pytest.mark.full
@builds
def test_gradients_take_longer_than_the_forward_alone(made: Capture) -> None:
    def least(found: Benchmark, name: str, what: str) -> float:
        series = timing.find(found, name, what)
        assert series is not None
        return min(series.seconds)  # a disturbance only slows a machine down

    # A machine may be so busy that every sample of a measurement was disturbed.
    tried = (measured(made if i == 0 else benchmark(wave, leaf(), seconds=0.2)) for i in range(3))
    assert any(
        all(least(found, name, BOTH) > least(found, name, FORWARD) for name in ("eager", NOTHING))
        for found in tried
    )


@pytest.mark.full
@builds
def test_the_ledger_stands_beside_the_times(made: Capture) -> None:
    found = measured(made)
    launches = {(s.name, s.phases): s.launches for s in found.series}
    assert launches[NOTHING, FORWARD] == 2 and launches["compiled", FORWARD] == 1
    assert launches["eager", FORWARD] == 2
    assert launches["compiled", BOTH] == made.ledger.total.launches == 2
    assert launches[NOTHING, BOTH] == at_step(made, NOTHING).ledger.total.launches
    nbytes = {(s.name, s.phases): s.nbytes for s in found.series}
    assert nbytes["compiled", FORWARD] == 2 * N * 4
    assert nbytes["eager", FORWARD] == nbytes[NOTHING, FORWARD] == 4 * N * 4
    assert nbytes["compiled", BOTH] == made.ledger.total.bytes_after
    assert all(s.profiled_kernels is None for s in found.series)


@pytest.mark.full
@builds
def test_compile_time_is_by_stage_and_not_that_of_the_run(made: Capture) -> None:
    parts = dict(measured(made).compile_seconds)
    assert {"dynamo", "forward.build", "backward.build", "forward.loops"} <= set(parts)
    assert not {"run", "eager count"} & set(parts)
    assert timing.compile_time(measured(made)) == pytest.approx(sum(parts.values()))
    even = timing.break_even(measured(made))
    assert even is not None and (even.calls is None) == (even.saved <= 0)


@pytest.mark.full
@builds
def test_what_computed_the_same_is_not_noted(made: Capture) -> None:
    found = measured(made)
    assert quiet(found) == ()
    assert found.clock == "monotonic clock" and found.device.startswith("cpu, ")
    assert found.speed is not None and found.speed.measured and found.speed.bandwidth > 0


@pytest.mark.full
@builds
def test_the_capture_is_a_built_one(made: Capture) -> None:
    assert made.options.build and made.function == "wave"
    assert {code.stamp for c in made.compilations for code in c.code.values()} == {"ran"}
    steps = at_step(made, NOTHING)
    assert {code.stamp for c in steps.compilations for code in c.code.values()} == {"ran"}
    assert Capture.from_json(made.to_json()) == made
    text = "\n".join(timing.words(measured(made)))
    assert "forward+backward" in text and NOTHING in text and "break-even" in text


# The user's objects.
@pytest.mark.exhaustive
@builds
def test_nothing_of_the_user_is_changed() -> None:
    norm = nn.BatchNorm1d(4)
    kept = torch.zeros(3)

    def fn(x: torch.Tensor) -> torch.Tensor:
        kept.add_(1)
        return norm(x * 1).mul_(2) + x.add_(1)

    x = torch.arange(12.0).reshape(3, 4)
    entries = snapshot([fn])
    found = measured(benchmark(fn, x, ablations=False, seconds=0.1))
    assert diff(entries, snapshot([fn])) == []
    assert torch.equal(x, torch.arange(12.0).reshape(3, 4)) and x._version == 0
    assert kept.tolist() == [0, 0, 0]
    assert int(norm.num_batches_tracked) == 0 and norm.running_mean.eq(0).all()
    assert norm.weight.grad is None
    assert [s.name for s in found.series if s.phases == FORWARD] == ["eager", "compiled"]
    assert any("in place" in n for n in found.notes)
    assert not any("differs" in n for n in found.notes)


@builds
@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_module_is_not_touched_and_its_parameters_get_gradients() -> None:
    net = nn.Linear(4, 2)
    net.weight.grad = torch.ones_like(net.weight)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    x = torch.ones(3, 4)
    made = benchmark(net, x, ablations=False, seconds=0.1)
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert net.weight.grad.eq(1).all() and net.bias.grad is None
    assert timing.find(measured(made), "compiled", BOTH) is not None
    assert made._live.call()[0] is net  # type: ignore[attr-defined]


@builds
@pytest.mark.slow
@pytest.mark.exhaustive
def test_random_functions_are_not_compared_and_seeds_stay() -> None:
    torch.manual_seed(3)
    state = torch.get_rng_state()
    found = measured(
        benchmark(lambda x: torch.rand_like(x) + x, torch.ones(64), ablations=False, seconds=0.1)
    )
    assert torch.equal(torch.get_rng_state(), state)
    assert [n for n in found.notes if "random numbers" in n]
    assert not any("differs" in n for n in found.notes)


# Results.
@pytest.mark.full
@builds
def test_a_difference_from_eager_is_said() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return x + 3 if torch.compiler.is_compiling() else x + 1

    found = measured(benchmark(fn, torch.ones(64), ablations=False, seconds=0.1))
    assert quiet(found) == ("compiled differs from eager by up to 2.00e+00",)


@builds
@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_function_that_is_compiled_again_meanwhile_has_no_ledger_beside() -> None:
    calls = [0]

    def fn(x: torch.Tensor) -> torch.Tensor:
        calls[0] += 1
        return x * (2 if calls[0] < 2 else 3)

    found = measured(benchmark(fn, torch.ones(64), ablations=False, seconds=0.1))
    assert any("compiled" in n and "while it was measured" in n for n in found.notes)
    assert all(s.launches is None and s.nbytes is None for s in found.series)


@pytest.mark.parametrize(
    ("got", "want", "note"),
    [
        ([torch.ones(2)], [torch.ones(2)], []),
        ([torch.tensor([1.0, float("nan")])], [torch.tensor([1.0, float("nan")])], []),
        ([torch.tensor([1.0, float("inf")])], [torch.tensor([1.0, float("inf")])], []),
        ([torch.tensor([1.5])], [torch.tensor([1.0])], ["way differs from eager by up to 5.00e-01"]),
        ([torch.tensor([3])], [torch.tensor([1])], ["way differs from eager by up to 2.00e+00"]),
        ([torch.tensor([True])], [torch.tensor([False])], ["way differs from eager by up to 1.00e+00"]),
        ([torch.ones(2)], [torch.ones(3)], ["way differs from eager: float32[2] where eager has float32[3]"]),
        ([torch.tensor([float("nan")])], [torch.ones(1)], ["way differs from eager by up to inf"]),
        ([], [torch.ones(1)], ["way differs from eager: it returns 0 tensors, eager 1"]),
    ],
)  # fmt: skip
def test_differences(got: list[torch.Tensor], want: list[torch.Tensor], note: list[str]) -> None:
    assert _differences("way", got, want) == note


def test_gradients_are_those_of_autograd_and_leave_no_grad() -> None:
    x, w = leaf(3), leaf(3)

    def fn() -> Any:
        return {"a": torch.sin(x) * w, "n": 1, "b": (x.detach(), w * 2)}

    how = ResultGradients.of(fn())
    assert how is not None and {id(t) for t in how.leaves} == {id(x), id(w)}
    for _ in range(2):  # each call has its own graph
        by_leaf = dict(zip([id(t) for t in how.leaves], how.take(fn()), strict=True))
        torch.testing.assert_close(by_leaf[id(x)], torch.cos(x) * w)
        torch.testing.assert_close(by_leaf[id(w)], torch.sin(x) + 2)
    assert x.grad is None and w.grad is None
    assert ResultGradients.of(torch.ones(2)) is None


def test_gradients_reach_a_leaf_whose_data_is_replaced() -> None:
    """Before torch 2.15, ``torch.autograd.grad`` does not find it by the tensor: no backward would be timed."""
    x, w = leaf(3), leaf(3)

    def fn() -> torch.Tensor:
        w.data = w.data.clamp(-0.5, 0.5)
        return x.detach() * w

    compiled = torch.compile(fn, backend="aot_eager")
    how = ResultGradients.of(fn())
    assert how is not None and not how.replaces_data
    how.observe(compiled())
    (plain,) = torch.autograd.grad(compiled(), [w], torch.ones(3), allow_unused=True)
    assert how.replaces_data == (plain is None)
    for way in (fn, compiled):
        gradients = [gradient for gradient in how.take(way()) if gradient is not None]
        torch.testing.assert_close(gradients, [x.detach()])


def test_a_leaf_with_two_edges_has_one_gradient() -> None:
    """Before torch 2.15, compiled code that replaces the data of a leaf has an edge to it of its own."""
    x, w = leaf(3), leaf(3)

    def clamped() -> torch.Tensor:
        w.data = w.data.clamp(-0.5, 0.5)
        return 2 * x.detach() * w

    compiled = torch.compile(clamped, backend="aot_eager")
    ways = [lambda: clamped() + x.detach() * w, lambda: compiled() + x.detach() * w]
    how = ResultGradients.of(ways[0]())
    assert how is not None
    how.observe(ways[1]())
    for way in ways:
        gradients = [gradient for gradient in how.take(way()) if gradient is not None]
        torch.testing.assert_close(gradients, [3 * x.detach()])


# Alternation.
def test_ways_take_turns_in_changing_order() -> None:
    order: list[str] = []
    rounds: list[int] = []

    def time(call: Callable[[], Any], count: int) -> float:
        call()
        return 2e-3

    measuring = _Measuring((), {}, Clock("fake", time), 1.0, False, True)
    ways = {name: (lambda name=name: order.append(name)) for name in "abc"}
    measuring._take(FORWARD, ways, 0.1, lambda what, done, total: rounds.append(total))
    assert len(rounds) == 16 and set(rounds) == {16}  # 0.1 s, 6 ms a round
    turns = [order[-48:][i : i + 3] for i in range(0, 48, 3)]
    assert turns[:4] == [["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"], ["a", "b", "c"]]
    assert [len(s.seconds) for s in measuring.series] == [16, 16, 16]
    assert [s.calls for s in measuring.series] == [1, 1, 1]


def test_short_calls_are_repeated_alike_in_every_way() -> None:
    counts: dict[str, set[int]] = {"fast": set(), "slow": set()}
    running = [""]

    def time(call: Callable[[], Any], count: int) -> float:
        call()
        counts[running[0]].add(count)
        return {"fast": 1e-5, "slow": 5e-3}[running[0]]

    measuring = _Measuring((), {}, Clock("fake", time), 1.0, False, True)
    ways = {name: (lambda name=name: running.__setitem__(0, name)) for name in counts}
    measuring._take(FORWARD, ways, 1.0, lambda *args: None)
    assert [s.calls for s in measuring.series] == [100, 100]
    assert 100 in counts["fast"] and 100 in counts["slow"]


def test_the_clock_counts_calls() -> None:
    calls: list[int] = []
    clock = clock_of("cpu")
    assert clock.time(lambda: calls.append(1), 7) > 0
    assert len(calls) == 7
    work = torch.ones(1000, 1000)
    assert clock.time(lambda: work @ work, 3) > clock.time(lambda: None, 3)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is an NVIDIA GPU")
def test_without_a_gpu_nothing_is_profiled() -> None:
    assert profiled(lambda: torch.ones(3)) is None


def test_on_the_cpu_no_kernels_of_a_gpu_are_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if the machine has a GPU, a benchmark on the CPU does not look for launches in the profiler."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    assert clock_of("cpu").kernels(lambda: torch.ones(3)) is None
    assert clock_of("cuda").kernels is profiled


def test_a_busy_machine_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setattr("os.getloadavg", lambda: (7.25, 1.0, 1.0))
    assert "load 7.2 on 2 cores" in _load_note("cpu") and _load_note("cuda") == ""
    monkeypatch.setattr("os.getloadavg", lambda: (1.5, 9.0, 9.0))
    assert _load_note("cpu") == ""


# Errors.
def test_without_a_compiler_the_error_says_what_to_do() -> None:
    with inductor_config.patch({"cpp.cxx": (None, "no-such-compiler")}):
        with pytest.raises(BuildError, match=r"no compiler: .*CXX|no compiler: .*install"):
            benchmark(wave, leaf())
        with pytest.raises(BuildError, match="need none without build=True"):
            ablate(wave, leaf(), build=True)
        assert ablate(wave, leaf()).ablations


def test_unusable_arguments() -> None:
    with pytest.raises(UsageError, match="needs a callable"):
        benchmark(torch.ones(2))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="kwargs="):
        benchmark(wave, leaf(), kwargs=[1])  # type: ignore[arg-type]


@builds
@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_function_that_raises_is_a_capture_error_and_all_is_put_back() -> None:
    kept = torch.zeros(2)

    def fn(x: torch.Tensor) -> torch.Tensor:
        kept.add_(1)
        torch._dynamo.graph_break()
        raise KeyError("mine")

    with pytest.raises(CaptureError) as caught:
        benchmark(fn, torch.ones(2), seconds=0.1)
    assert type(caught.value.__cause__) is KeyError
    assert kept.tolist() == [0, 0]


@builds
@pytest.mark.slow
@pytest.mark.exhaustive
def test_ablate_with_build_is_timed_and_every_step_computes_the_same() -> None:
    def fn(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return nn.functional.gelu(nn.functional.layer_norm(x @ w, (16,))).sum(-1)

    ablation = ablate(fn, torch.randn(8, 16), torch.randn(16, 16), build=True)
    measurement = measured(ablation)
    assert [s.name for s in measurement.series] == ["eager", NOTHING, INLINED, "compiled"]
    assert not any("differs" in n or "could not" in n for n in measurement.notes)


@pytest.mark.exhaustive
@builds
def test_a_progress_bar_says_what_is_done(capfd: pytest.CaptureFixture[str]) -> None:
    benchmark(lambda x: x + 1, torch.ones(8), ablations=False, seconds=0.1, show_progress=True)
    said = capfd.readouterr()
    assert said.out == "" and "measuring forward" in said.err
    benchmark(lambda x: x + 1, torch.ones(8), ablations=False, seconds=0.1)
    assert capfd.readouterr() == ("", "")


class Sums(nn.Module):
    def __init__(self, detached: bool) -> None:
        super().__init__()
        self.weight, self.detached = nn.Parameter(torch.ones(8)), detached
        self.register_buffer("total", torch.zeros(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        total = self.total + x * self.weight
        self.total = total.detach() if self.detached else total
        return (total * x).sum()


@pytest.mark.exhaustive
@builds
@pytest.mark.parametrize("detached", [True, False])
def test_a_graph_that_outlives_its_call_is_refused_where_plain_torch_fails(detached: bool) -> None:
    plain, x = Sums(detached), torch.ones(8)
    plain(x).backward()
    if detached:
        plain(x).backward()
        assert len(measured(benchmark(Sums(detached), x, ablations=False, seconds=0.1)).series) == 4
        return
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        plain(x).backward()
    with pytest.raises(UsageError, match=r"keeps a tensor with its autograd graph.*backward=False"):
        benchmark(Sums(detached), x, ablations=False, seconds=0.1)
    made = benchmark(Sums(detached), x, backward=False, ablations=False, seconds=0.1)
    assert {s.phases for s in measured(made).series} == {FORWARD}
