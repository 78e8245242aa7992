"""Optimizer steps for an absent device."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from dispatched import Dispatched
from torch._subclasses.fake_tensor import FakeTensorMode

from compile_lens import capture
from compile_lens.child import pickling
from compile_lens.devices.models import resolve
from compile_lens.engine.call import Call
from compile_lens.engine.local import perform
from compile_lens.engine.options import CaptureOptions

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]

SHAPES = ((16, 16), (16,), (32, 16))


def optimizer(kind: str, **options: Any) -> Any:
    torch.manual_seed(0)
    parameters = [torch.nn.Parameter(torch.randn(shape)) for shape in SHAPES]
    for one in parameters:
        one.grad = torch.randn_like(one)
    return getattr(torch.optim, kind)(parameters, **{"lr": 0.1, **options})


def parameters(made: Any) -> list[torch.Tensor]:
    return [p for group in made.param_groups for p in group["params"]]


def test_gradients_cross() -> None:
    made = optimizer("SGD")
    twin, (first, *_) = pickle.loads(pickling.pack((made, parameters(made))).data)
    assert parameters(twin)[0] is first and isinstance(first, torch.nn.Parameter)
    for one, other in zip(parameters(made), parameters(twin)):
        assert torch.equal(one, other) and one.grad is not None and torch.equal(one.grad, other.grad)


@pytest.mark.full
@pytest.mark.parametrize(
    ("kind", "options", "name"),
    [
        ("AdamW", {}, "triton_for_"),  # CUDA's default is foreach
        ("AdamW", {"foreach": True}, "triton_for_"),
        ("AdamW", {"foreach": False}, "triton_poi_"),
        ("AdamW", {"capturable": True, "lr": torch.tensor(0.1)}, "triton_for_"),
        ("SGD", {"momentum": 0.9}, "triton_for_"),
    ],
    ids=["default", "foreach", "one by one", "capturable", "momentum"],
)
@pytest.mark.cases(full=2)
def test_a_step(kind: str, options: dict[str, Any], name: str) -> None:
    made = optimizer(kind, **options)
    found = capture(made.step, target="h100")
    assert {k.language for k in found.kernels} == {"triton"}
    assert any(k.name.startswith(name) for k in found.kernels) and found.coverage().unexplained == ()
    devices = {
        t.device
        for c in found.compilations
        for g in c.graphs.values()
        for n in g.calls
        for t in n.outputs
        if "lift_fresh_copy" not in n.target  # a literal of torch 2.15's step, which is on the CPU there too
    }
    assert devices == {"cuda:0"}


@pytest.mark.full
@pytest.mark.parametrize("kind", ["AdamW", "SGD", "Adadelta"])
def test_the_frames_of_a_step_are_those_of_plain_torch(kind: str) -> None:
    """An optimizer hooks its class's ``step`` when it is created, and Dynamo reaches the hooked one first."""
    torch._dynamo.reset()
    torch._dynamo.utils.clear_compilation_metrics()
    torch.compile(optimizer(kind, foreach=True).step, backend="eager")()
    metrics = torch._dynamo.utils.get_compilation_metrics()
    frames = [
        one.co_name for one in metrics if one.graph_op_count is not None
    ]  # otherwise nothing is left to trace
    found = capture(optimizer(kind, foreach=True).step, target="h100")
    assert [c.function for c in found.compilations] == frames


INHERITED = """
import torch, compile_lens
weight = torch.nn.Parameter(torch.rand(4))
weight.grad = torch.rand(4)
torch.optim.Adam([weight])  # hooks the step that AdamW inherits: here, not yet in the child
step = torch.optim.AdamW([weight]).step
torch.compile(step, backend="eager")()
frames = [m.co_name for m in torch._dynamo.utils.get_compilation_metrics() if m.graph_op_count is not None]
torch._dynamo.reset()
print([c.function for c in compile_lens.capture(step, target="h100").compilations] == frames, frames)
"""


@pytest.mark.exhaustive
def test_a_step_that_is_inherited_is_hooked_as_well(child: Callable[..., str]) -> None:
    assert child(INHERITED).splitlines()[-1] == "True ['wrapper', 'step']"


@pytest.mark.full
def test_a_step_does_what_the_optimizer_does() -> None:
    options = {"weight_decay": 0.1, "foreach": True}
    made, plain = optimizer("AdamW", **options), optimizer("AdamW", **options)
    perform(Call.read(made.step, (), None, CaptureOptions(target="h100"), model=resolve("h100")))
    plain.step()
    for one, other in zip(parameters(made), parameters(plain)):
        torch.testing.assert_close(one, other)


def test_a_fused_step_is_one_of_torchs_own() -> None:
    found = capture(optimizer("AdamW", fused=True).step, target="h100")
    assert not found.kernels and "don't trace into fused optimizer" in found.nothing_compiled


def test_a_counter_of_an_eager_step_is_moved_as_on_the_device() -> None:
    """Plain Adam counts on the CPU. Dynamo moves the counter to its parameter (see ``move_step_if_cpu``)."""
    made = optimizer("Adam")
    made.step()
    assert {state["step"].device.type for state in made.state.values()} == {"cpu"}
    found = capture(made.step, target="h100")
    assert {k.language for k in found.kernels} == {"triton"}
    (compilation,) = [c for c in found.compilations if c.graphs]
    assert {t.device for n in compilation.graphs["inference"].calls for t in n.outputs} == {"cuda:0"}


@pytest.mark.full
@pytest.mark.parametrize("kind", ["Adam", "AdamW", "ASGD", "RAdam", "Adamax", "Adadelta", "SGD"])
@pytest.mark.cases(full=3)
def test_the_operators_of_a_later_step_are_counted(kind: str) -> None:
    """The counts are the operators that run from plain Dynamo's graph of the step, as its calls are written."""
    options: dict[str, Any] = {"foreach": True} | ({"momentum": 0.9} if kind == "SGD" else {})
    made, plain = optimizer(kind, **options), optimizer(kind, **options)
    made.step()
    plain.step()
    seen = Dispatched()

    def run(gm: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        def counted(*args: Any) -> Any:
            with seen:
                return gm.forward(*args)

        return counted

    torch._dynamo.reset()
    torch.compile(plain.step, backend=run)()
    found, _ = perform(Call.read(made.step, (), None, CaptureOptions(target="h100"), model=resolve("h100")))
    (compilation,) = [c for c in found.compilations if c.graphs]
    assert compilation.eager is not None, compilation.eager_note
    lerp = "aten._foreach_lerp_.Scalar"
    if (
        any(op.name == lerp for op in compilation.eager) and lerp not in seen.work
    ):  # Dynamo expands it into these
        parts = {
            "_foreach_sub.List": 1,
            "full_like.default": len(parameters(made)),
            "_foreach_addcmul_.Scalar": 1,
        }
        seen.work.subtract({f"aten.{name}": count for name, count in parts.items()})
        seen.work[lerp] += 1
    assert {op.name: op.count for op in compilation.eager} == +seen.work


@pytest.mark.full
def test_what_nadam_keeps_on_the_cpu_stays_there() -> None:
    """The parameters are on the device, and a plain eager step created the state, as in plain torch. Dynamo moves
    ``step`` only."""
    with FakeTensorMode():
        there = torch.optim.NAdam([torch.empty(8, device="cuda", requires_grad=True)])
        for p in parameters(there):
            p.grad = torch.empty(8, device="cuda")
        there._init_group(there.param_groups[0], [], [], [], [], [], [])  # type: ignore[attr-defined]
        (state,) = there.state.values()
    on_the_cpu = {name for name, value in state.items() if value.device.type == "cpu"}
    assert on_the_cpu == {"step", "mu_product"}
    for steps, device in ((1, "cpu"), (0, "cuda:0")):  # tensors created while tracing are on the device
        made = optimizer("NAdam")
        for _ in range(steps):
            made.step()
        found, _ = perform(
            Call.read(made.step, (), None, CaptureOptions(target="h100"), model=resolve("h100"))
        )
        (compilation,) = [c for c in found.compilations if c.graphs]
        products = [n for n in compilation.graphs["dynamo"].nodes if "mu_product" in n.target]
        assert {t.device for n in products for t in n.outputs} == {device}
        assert ("cpp" in {k.language for k in found.kernels}) == (device == "cpu")
        assert compilation.eager is not None
