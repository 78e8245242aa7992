"""A capture does not change the program, torch, or the caller's tensors, even if it fails."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch._inductor.config as inductor_config
from running import run
from state import diff, leaves, snapshot, unchanged
from torch import nn
from zoo import seeded

from compile_lens import CaptureError, capture
from compile_lens.results.capture import Capture

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]


def wave(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) ** 2 + torch.cos(x) ** 2


class Injected(RuntimeError):
    """An error that a test puts into the compiler."""


def leaf(n: int = 16) -> torch.Tensor:
    return torch.linspace(0, 1, n, requires_grad=True)


# Gradients, random numbers, output.
@unchanged
def test_gradients_of_the_user_are_untouched() -> None:
    with seeded():
        net, x = nn.Linear(4, 2), torch.ones(3, 4, requires_grad=True)
    net(x).sum().backward()
    grads = [net.weight.grad, net.bias.grad, x.grad]
    values = [g.clone() for g in grads]
    record = capture(net, x)
    assert "backward" in record.compilations[0].graphs
    assert all(g is h for g, h in zip([net.weight.grad, net.bias.grad, x.grad], grads, strict=True))
    assert all(torch.equal(g, v) for g, v in zip(grads, values, strict=True))


class OwnCall(nn.Module):
    """A module with its own ``__call__`` around its ``forward``."""

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return self.forward(x) + 1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sin()


def hooked() -> nn.Module:
    net = nn.Sequential(nn.Linear(4, 4))
    net.register_forward_pre_hook(lambda module, given: (given[0] * 2,))
    return net


MODULES: dict[str, Callable[[], nn.Module]] = {
    "traced": lambda: torch.fx.symbolic_trace(nn.Sequential(nn.Linear(4, 4))),
    "own call": OwnCall,
    "hooked": hooked,
    "plain": lambda: nn.Linear(4, 4),
    "exported": lambda: torch.export.export(nn.Linear(4, 4), (torch.ones(2, 4),)).module(),
}


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("compiled", [False, True])
def test_attributes_of_a_module_stay_as_they_were(name: str, compiled: bool) -> None:
    """``torch.compile`` sets one on the module that it gets; one from the program's own compile stays."""
    net = MODULES[name]()
    given = torch.compile(net) if compiled else net
    before, of_class = dict(vars(net)), set(vars(type(net)))
    capture(given, torch.ones(2, 4))
    assert set(vars(net)) == set(before) and set(vars(type(net))) == of_class
    assert all(vars(net)[key] is value for key, value in before.items())


@pytest.mark.full
@pytest.mark.parametrize("name", ["traced", "own call"])
def test_a_module_is_verified_by_its_own_attributes(name: str) -> None:
    net, x = MODULES[name](), torch.ones(2, 4)
    report = capture(net, x).verify(net, x)
    assert report.ok is True, str(report)


@unchanged
def test_gradient_that_was_none_stays_none() -> None:
    x = leaf()
    capture(wave, x)
    assert x.grad is None and x._version == 0


@unchanged
def test_random_numbers_after_a_capture_are_those_without_it() -> None:
    def noisy(x: torch.Tensor) -> torch.Tensor:
        return nn.functional.dropout(x, 0.5) + torch.rand_like(x) * random.random()

    with seeded(7):
        without = (torch.rand(3), random.random())
    with seeded(7):
        capture(noisy, leaf())
        assert torch.equal(torch.rand(3), without[0])
        assert random.random() == without[1]


@unchanged
def test_function_runs_once() -> None:
    norm, calls = nn.BatchNorm1d(4), []

    @torch.compiler.disable
    def note() -> None:
        calls.append(1)

    def fn(x: torch.Tensor) -> torch.Tensor:
        note()
        return norm(x).add_(1)

    x = torch.arange(12.0).reshape(3, 4)
    capture(fn, x)
    assert calls == [1]
    assert int(norm.num_batches_tracked) == 1


@unchanged
def test_mutation_happens_once() -> None:
    x = torch.ones(4)
    _, result = run(lambda x: x.add_(1), x)
    assert x.tolist() == [2.0] * 4
    assert result is x or result.tolist() == [2.0] * 4


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder) -> None:
    capture(wave, leaf())
    assert capfd.readouterr() == ("", "")
    assert [str(w.message) for w in recwarn] == []


@unchanged
def test_result_can_be_used_for_training() -> None:
    x, y = leaf(), leaf()
    _, result = run(wave, x)
    (captured,) = torch.autograd.grad(result.exp().sum(), x)
    (expected,) = torch.autograd.grad(wave(y).exp().sum(), y)
    assert torch.equal(captured, expected)


# Errors of the user.
def _raises(x: torch.Tensor) -> torch.Tensor:
    y = torch.sin(x)
    raise KeyError("mine")
    return y


def _raises_after_break(x: torch.Tensor) -> torch.Tensor:
    y = torch.sin(x)
    torch._dynamo.graph_break()
    if x.shape[0] == 16:
        raise ZeroDivisionError("mine")
    return torch.cos(y)


def _bad_shape(x: torch.Tensor) -> torch.Tensor:
    return x @ torch.ones(3, 3)


@pytest.mark.parametrize(
    ("fn", "kind"),
    [(_raises, KeyError), (_raises_after_break, ZeroDivisionError)],
    ids=["at_once", "after_break"],
)
@unchanged
def test_error_of_the_function_is_the_cause(fn: Any, kind: type[Exception]) -> None:
    with pytest.raises(CaptureError) as caught:
        capture(fn, leaf())
    assert type(caught.value.__cause__) is kind
    assert "mine" in str(caught.value)
    failure = caught.value.capture.failure
    assert failure is not None and failure.type.split(".")[-1] == kind.__name__
    assert fn.__name__ in failure.traceback
    Capture.from_json(caught.value.capture.to_json())


@unchanged
def test_graphs_before_the_error_are_kept() -> None:
    with pytest.raises(CaptureError) as caught:
        capture(_raises_after_break, leaf())
    first = caught.value.capture.compilations[0]
    assert "dynamo" in first.graphs and "forward.groups" in first.graphs and "forward" in first.code


@unchanged
def test_wrong_shapes_are_an_error_of_the_program() -> None:
    with pytest.raises(CaptureError) as caught:
        capture(_bad_shape, torch.ones(2, 5))
    assert caught.value.__cause__ is not None
    assert caught.value.capture.failure is not None


@unchanged
def test_keyboard_interrupt_passes_and_restores() -> None:
    def stopped(x: torch.Tensor) -> torch.Tensor:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        capture(stopped, leaf())


# Errors in each stage of the compiler.
def _raising(after: int = 0) -> Callable[..., Any]:
    seen: list[int] = []

    def hook(*args: Any, **kwargs: Any) -> Any:
        seen.append(1)
        if len(seen) > after:
            raise Injected("put in by a test")
        return args[0] if args else None

    return hook


CONFIG_STAGES = [
    ("pre_grad_custom_pass", 0, {"pre_grad"}, ["dynamo"]),
    ("joint_custom_pre_pass", 0, {"joint", "forward"}, ["dynamo", "pre_grad"]),
    ("joint_custom_post_pass", 0, {"joint", "forward"}, ["dynamo", "pre_grad", "joint"]),
    ("post_grad_custom_pre_pass", 0, {"forward.post_grad"}, ["pre_grad", "joint", "forward"]),
    ("post_grad_custom_post_pass", 0, {"forward.post_grad"}, ["pre_grad", "joint", "forward"]),
    (
        "_pre_fusion_custom_pass",
        0,
        {"forward.loops", "forward.groups"},
        ["joint", "forward", "forward.post_grad"],
    ),
    (
        "_post_fusion_custom_pass",
        0,
        {"forward.groups", "forward.code"},
        ["forward.post_grad", "forward.loops"],
    ),
    ("post_grad_custom_pre_pass", 1, {"backward.post_grad"}, ["forward.loops", "forward.groups", "backward"]),
    (
        "_post_fusion_custom_pass",
        1,
        {"backward.groups", "backward.code"},
        ["forward.groups", "backward.loops"],
    ),
]


@pytest.mark.parametrize(
    ("hook", "after", "stages", "earlier"), CONFIG_STAGES, ids=[f"{s[0]}-{s[1]}" for s in CONFIG_STAGES]
)
@unchanged
def test_error_in_a_pass(hook: str, after: int, stages: set[str], earlier: list[str]) -> None:
    with inductor_config.patch({hook: _raising(after)}):
        before = snapshot()
        with pytest.raises(CaptureError) as caught:
            capture(wave, leaf())
        assert diff(before, snapshot()) == []
    _check_partial(caught.value, stages, earlier)
    capture(wave, leaf())  # the next one works


METHODS = [
    (
        "torch._inductor.graph.GraphLowering.run_node",
        {"forward.loops"},
        ["joint", "forward", "forward.post_grad"],
    ),
    (
        "torch._inductor.scheduler.Scheduler.fuse_nodes",
        {"forward.groups"},
        ["forward.post_grad", "forward.loops"],
    ),
    (
        "torch._inductor.codegen.cpp.CppScheduling.codegen_node",
        {"forward.code"},
        ["forward.loops", "forward.groups"],
    ),
    ("torch._functorch.aot_autograd.aot_stage1_graph_capture", {"joint"}, ["dynamo", "pre_grad"]),
]


@pytest.mark.parametrize(
    ("name", "stages", "earlier"), METHODS, ids=[m[0].rsplit(".", 1)[1] for m in METHODS]
)
@unchanged
def test_error_in_the_compiler(
    name: str, stages: set[str], earlier: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(name, _raising())
        before = snapshot()
        with pytest.raises(CaptureError) as caught:
            capture(wave, leaf())
        assert diff(before, snapshot()) == []
    _check_partial(caught.value, stages, earlier)


def _check_partial(error: CaptureError, stages: set[str], earlier: list[str]) -> None:
    assert error.capture.failure is not None
    assert error.capture.failure.stage.split(" ")[-1] in stages
    assert "put in by a test" in error.capture.failure.message
    cause: Any = error.__cause__
    while cause is not None and not isinstance(cause, Injected):
        # Dynamo wraps an error of a backend, and stores it outside the chain of causes.
        cause = getattr(cause, "inner_exception", None) or cause.__cause__
    assert isinstance(cause, Injected), "the injected error is lost"
    for stage in earlier:
        assert stage in error.capture.compilations[0].graphs, f"{stage} was seen, and is lost"
    assert Capture.from_json(error.capture.to_json()) == error.capture


@pytest.mark.parametrize("hook", sorted({s[0] for s in CONFIG_STAGES}))
@unchanged
def test_hooks_of_the_user_still_run(hook: str) -> None:
    seen: list[int] = []

    def mine(*args: Any, **kwargs: Any) -> Any:
        seen.append(1)
        return args[0] if "fusion" in hook else None

    with inductor_config.patch({hook: mine}):
        capture(wave, leaf())
        assert seen, f"{hook} was set by the user and did not run"
        assert getattr(inductor_config, hook) is mine


# Nested captures and threads.
@pytest.mark.full
@unchanged
def test_capture_inside_a_captured_function() -> None:
    inner: list[Capture] = []

    def fn(x: torch.Tensor) -> torch.Tensor:
        y = torch.exp(x)
        inner.append(capture(lambda t: torch.tanh(t), x.detach()))
        return torch.sin(y)

    outer = capture(fn, leaf())
    assert _targets(inner[0]) == {"tanh"}
    assert {"exp", "sin"} <= _targets(outer) and "tanh" not in _targets(outer)


def _targets(found: Capture) -> set[str]:
    graphs = [c.graphs["dynamo"] for c in found.compilations if "dynamo" in c.graphs]
    return {n.target.split(".")[-1] for g in graphs for n in g.calls}


compiles_in_threads = pytest.mark.skipif(
    tuple(int(p) for p in torch.__version__.split(".")[:2]) < (2, 13),
    reason="torch 2.11 itself crashes when several threads call torch.compile at once",
)


def _threads(backend: Any, rounds: int) -> None:
    """Run two threads that capture and one that compiles, all at once; each must see only its own results."""
    start, errors, found = threading.Barrier(3), [], {"sin": [], "tanh": []}

    def capturing(name: str) -> None:
        op = getattr(torch, name)
        for _ in range(rounds):
            found[name].append(capture(lambda x: op(x) * 2, leaf()))

    def compiling() -> None:
        for _ in range(rounds):
            x = leaf()
            result = torch.compile(lambda t: torch.exp(t) + 1, backend=backend)(x)
            result.sum().backward()
            assert torch.allclose(result, torch.exp(x) + 1) and torch.allclose(x.grad, torch.exp(x))

    def guarded(work: Callable[[], None]) -> None:
        try:
            start.wait()
            work()
        except BaseException as error:
            errors.append(error)

    works = [lambda: capturing("sin"), lambda: capturing("tanh"), compiling]
    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert errors == []
    for name, captures in found.items():
        for c in captures:
            assert _targets(c) == {name, "mul"}
            assert "backward.groups" in c.compilations[0].graphs
            assert {k.phase for k in c.kernels} == {"forward", "backward"}


@pytest.mark.full
def test_numbers_are_forgotten() -> None:
    """Torch records under an argument's name that its number cannot be an input, for any argument with that name."""
    from torch._dynamo.symbolic_convert import TensorifyState

    def each(function: Callable[..., Any], x: torch.Tensor) -> None:
        for s in (0.5, 1.5, 2.5, 3.5):
            print(end="")
            function(x, s)

    def compiles(function: Callable[..., Any]) -> int:
        return len(capture(each, function, torch.rand(8)).compilations)

    before = set(TensorifyState.force_specializations)
    try:
        TensorifyState.force_specializations.add("the program's")
        alone = compiles(lambda x, s: x * s)
        assert compiles(lambda x, s: x**s) == 4 > alone
        assert compiles(lambda x, s: x * s) == alone
        assert TensorifyState.force_specializations == {*before, "the program's"}
    finally:
        TensorifyState.force_specializations.clear()
        TensorifyState.force_specializations.update(before)


@pytest.mark.full
@compiles_in_threads
def test_threads() -> None:
    """Torch's counters contain the one compile of the third thread's function, which is cached, and no others."""
    counters = torch._dynamo.utils.counters
    before = snapshot(), counters["stats"]["unique_graphs"], counters["stats"]["calls_captured"]
    _threads("aot_eager", 4)
    changed = [line for line in diff(before[0], snapshot()) if not line.startswith("dynamo counters")]
    assert changed == []
    assert counters["stats"]["unique_graphs"] - before[1] == 1
    assert counters["stats"]["calls_captured"] - before[2] == 2  # exp, add


@compiles_in_threads
def test_captures_that_overlap_leave_the_limit_of_recursion_that_the_first_found() -> None:
    """The second starts while Inductor's limit of the first is in force, and ends after it."""
    compiled, begun, ended = threading.Event(), threading.Event(), threading.Event()

    @torch.compiler.disable
    def first_pauses() -> None:
        compiled.set()
        assert begun.wait(60)

    @torch.compiler.disable
    def second_pauses() -> None:
        begun.set()
        assert ended.wait(60)

    def first(x: torch.Tensor) -> torch.Tensor:
        y = torch.sin(x)
        first_pauses()
        return y + 1

    def second(x: torch.Tensor) -> torch.Tensor:
        y = torch.cos(x)
        second_pauses()
        return y + 1

    def later() -> None:
        assert compiled.wait(60)
        capture(second, torch.rand(8))

    thread = threading.Thread(target=later)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(1500)  # Inductor raises it to 2,000
    try:
        thread.start()
        capture(first, torch.rand(8))
        ended.set()
        thread.join()
        assert sys.getrecursionlimit() == 1500
    finally:
        sys.setrecursionlimit(limit)


@pytest.mark.slow
@compiles_in_threads
@leaves(but=("dynamo counters", "environment", "path", "recursion limit"))  # plain compiles set these up
def test_threads_beside_inductor() -> None:
    _threads("inductor", 3)
