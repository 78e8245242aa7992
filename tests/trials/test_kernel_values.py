"""Values at each kernel of a call: the distance of eager and compiled code to float64, and the first that differs."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
import torch
from miscompiles import MISCOMPILES
from torch._inductor import lowering
from torch._inductor.codegen import cpp

import compile_lens
from compile_lens.record.divergence import RootCause, Transformation
from compile_lens.record.kernel_values import AGREES, IN_REGISTERS, NOT_COMPARED, GraphValues, KernelValue
from compile_lens.results.divergence import Divergence
from compile_lens.trials.kernel_values import KernelValues
from compile_lens.views.explanations.divergence import of_divergence

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]

prims = torch.ops.prims


def seeded(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(5))


def by_node(divergence: Divergence, graph: int = 0) -> dict[str, KernelValue]:
    return {value.node: value for value in divergence.graphs[graph].values}


def apart(value: torch.Tensor, exact: torch.Tensor) -> float:
    return float((value.double() - exact).norm() / exact.norm())


def score(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1) * torch.sin(x)


@pytest.mark.full
def test_values_that_a_kernel_stores_are_compared_with_float64() -> None:
    x = seeded(64, 128)
    torch._dynamo.reset()
    with torch._inductor.config.patch(force_disable_caches=True):
        plain = torch.compile(score)(x)
    torch._dynamo.reset()
    divergence = compile_lens.divergence(score, x)
    values = by_node(divergence)
    assert list(values) == ["amax", "sub", "exp", "sum_1", "div", "sin", "mul"]
    assert {n for n, v in values.items() if v.outcome == AGREES} == {"amax", "sum_1", "mul"}
    assert {v.outcome for n, v in values.items() if n not in ("amax", "sum_1", "mul")} == {IN_REGISTERS}
    exact = score(x.double())
    assert values["mul"].compiled == pytest.approx(apart(plain, exact), rel=1e-6)
    assert values["amax"].eager == values["amax"].compiled == 0.0
    total = (x - x.amax(-1, keepdim=True)).exp().sum(-1, keepdim=True)
    power = (x - x.amax(-1, keepdim=True)).exp()  # the graph has the softmax decomposed
    assert values["mul"].eager == pytest.approx(apart(power / total * x.sin(), exact), rel=1e-6)
    wide = (x.double() - x.double().amax(-1, keepdim=True)).exp().sum(-1, keepdim=True)
    spacing = 2.0 ** torch.floor(torch.log2(wide)) * 2.0**-23
    assert values["sum_1"].eager_ulps == pytest.approx(
        float(((total - wide).abs() / spacing).max()), rel=1e-6
    )
    text = " ".join(str(divergence).split())
    assert "3 of 7 values compared (those that a kernel stores); 4 stay in registers" in text
    assert divergence.first_value is None and "first value that differs" not in text
    saved = json.loads(divergence.to_json())
    assert saved["first_value"] is None and len(saved["graphs"][0]["values"]) == 7


def reused(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    for _ in range(6):
        x = torch.relu(x @ w) / 4
    return x.sort(-1).values


@pytest.mark.full
def test_buffers_that_are_used_again_are_read_before() -> None:
    divergence = compile_lens.divergence(reused, seeded(32, 32), seeded(32, 32))
    text = divergence.capture.code["inference"]
    assert "# reuse" in text
    outcomes = [v.outcome for v in divergence.graphs[0].values]
    assert outcomes.count(AGREES) >= 8 and set(outcomes) <= {AGREES, IN_REGISTERS}


def changed(x: torch.Tensor, at: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    y = x.cumsum(0)
    y[at] = 3.0
    x.mul_(2)
    return torch.cat([y.exp(), x]), y


@pytest.mark.full
def test_writes_in_place_are_no_difference() -> None:
    divergence = compile_lens.divergence(changed, seeded(16, 4), torch.tensor([3, 5]))
    assert divergence.agrees
    values = divergence.graphs[0].values
    assert any(v.compared for v in values) and {v.outcome for v in values if v.compared} == {AGREES}


@pytest.mark.full
def test_random_numbers_and_their_readers_are_not_compared() -> None:
    def noisy(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return (x + torch.rand_like(x)).sum(0), x.cumsum(0)

    values = by_node(compile_lens.divergence(noisy, seeded(8, 8)))
    assert values["cumsum"].outcome == AGREES
    assert values["sum_1"].outcome == NOT_COMPARED and "random" in values["sum_1"].reason


@contextlib.contextmanager
def wrong(operator: Any, change: Any) -> Iterator[None]:
    """Make the code of an operator use the arguments that ``change`` returns."""
    real = lowering.lowerings[operator]

    def lowered(*args: Any, **kwargs: Any) -> Any:
        return real(*change(*args), **kwargs)

    with mock.patch.dict(lowering.lowerings, {operator: lowered}):
        yield


def running(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = (x @ w).sin()
    z = y.cumsum(0)  # its gradient is flipped twice
    return (z * z).mean()


@pytest.mark.exhaustive
def test_the_first_value_may_be_in_the_backward() -> None:
    x, w = seeded(16, 8), seeded(8, 8).requires_grad_()
    with wrong(prims.rev.default, lambda x, dims: (x, [1])):
        divergence = compile_lens.divergence(running, x, w)
    first = divergence.first_value
    assert divergence.agrees is False and first is not None and divergence.doubt == ""
    assert first.phase == "backward" and first.frames[0].text.startswith("z = y.cumsum(0)")
    forward = [v for v in divergence.graphs[0].values if v.phase == "forward" and v.compared]
    assert forward and {v.outcome for v in forward} == {AGREES}


def twice(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    a = torch.sin(x).sum(1)
    b = torch.cos(x).sum(1)
    return a, b


@pytest.mark.exhaustive
def test_two_errors_are_both_said() -> None:
    both = contextlib.ExitStack()
    for name in ("sin", "cos"):
        for kind in (cpp.CppOverrides, cpp.CppVecOverrides):
            scalar = kind is cpp.CppOverrides
            text = "std::exp({})" if scalar else "{}.exp()"
            both.enter_context(mock.patch.object(kind, name, staticmethod(text.format)))
    with both:
        divergence = compile_lens.divergence(twice, seeded(8, 16))
    first, cause = divergence.first_value, divergence.cause
    assert first is not None and first.node == "sum_1" and cause is not None
    if cause.transformation is not None and cause.transformation.nodes == ("cos",):
        assert "two causes" in divergence.doubt and divergence.doubt in " ".join(str(divergence).split())
    else:
        assert divergence.doubt == ""


def turned(x: torch.Tensor) -> torch.Tensor:
    return (x * 2).flip(0).cumsum(0)


@pytest.mark.exhaustive
def test_the_variant_and_the_call_that_differ_are_named() -> None:
    def of_seven_rows(x: Any, dims: Any) -> Any:
        return (x, [1] if int(x.get_size()[0]) == 7 else dims)

    with wrong(prims.rev.default, of_seven_rows):
        divergence = compile_lens.divergence(turned, calls=[(seeded(4, 6),), (seeded(7, 6),)], dynamic=False)
    first = divergence.first_value
    assert divergence.agrees is False and first is not None and first.call == 1
    assert [graph.count("differs") for graph in divergence.graphs] == [0, 1]
    failed = [check.name for check in divergence.verification.comparisons if not check.ok]
    assert failed == ["result[1]"]
    assert "call: 2 of 2" in " ".join(str(divergence).split())


class Counting(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total += x.sum(0)
        return x.cumsum(0) / (1 + self.total.abs())


@pytest.mark.full
def test_calls_share_what_they_change_in_place() -> None:
    model, x = Counting(), seeded(4, 6)
    divergence = compile_lens.divergence(model, calls=[(x,), (x,)])
    names = {check.name for check in divergence.verification.comparisons}
    assert divergence.agrees and {"result[0]", "result[1]"} <= names
    assert not model.total.any(), "put back after the capture, and after each run"
    assert divergence.graphs[0].count("agrees") and not divergence.graphs[0].count("differs", "follows")


def broken(x: torch.Tensor) -> torch.Tensor:
    y = x.sin().cumsum(0)
    torch._dynamo.graph_break()
    z = y.flip(0)
    return z.cumsum(0)


@pytest.mark.exhaustive
def test_the_piece_after_a_graph_break_is_named() -> None:
    with wrong(prims.rev.default, lambda x, dims: (x, [1])):
        divergence = compile_lens.divergence(broken, seeded(6, 6))
    first = divergence.first_value
    assert divergence.agrees is False and first is not None
    assert first in divergence.graphs[1].values and not divergence.graphs[0].count("differs")
    assert "broken, after line" in " ".join(str(divergence).split())
    why = of_divergence(divergence).why
    assert why[0].startswith("the first value that differs: ") and first.kernel in why[0]


@pytest.mark.exhaustive
def test_a_part_of_a_value_may_be_the_first() -> None:
    error = MISCOMPILES["first index of a slice"]
    with error.patch():
        divergence = compile_lens.divergence(error.function, *error.inputs())
    first = divergence.first_value
    assert first is not None and first.node.startswith("slice") and first.frames[0].call == "y[2:10]"


@pytest.mark.parametrize(("cause", "kind", "doubted"), [
    ("lowering", "lowering", True), ("setting", "operator", False), ("memory reuse", "lowering", False),
    ("partition", "operator", False),
])  # fmt: skip
def test_a_cause_is_doubted_by_nodes_of_the_same_graph_alone(cause: str, kind: str, doubted: bool) -> None:
    value = KernelValue("sin", "differs")
    root = RootCause(cause, Transformation(kind, "aten.cos.default", "1/0", nodes=("cos",)))
    sentence = KernelValues().doubt(root, (GraphValues("0/0", (value,)), value))
    assert ("two causes" in sentence) == doubted == bool(sentence)


PLANTED = (
    "attention pattern that ignores dim",
    "buffer that is reused too early",
    "derivative where an input is zero",
    "decomposition",
    "fused loops",
    "pass after the split",
    "dtype of an accumulator",
    "sum over another dimension's size",
    "symbolic size",
)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", PLANTED)
def test_the_first_value_is_of_the_error_or_computed_from_it(name: str) -> None:
    error = MISCOMPILES[name]
    args = error.inputs()
    with error.patch():
        divergence = compile_lens.divergence(error.function, *args, **error.options)
    assert divergence.agrees is False and divergence.doubt == ""
    first = divergence.first_value
    if error.kind == "decomposition":  # the error is already in Inductor's input graph
        assert first is None
        return
    assert first is not None
    if first.phase != "backward" and error.kind != "memory reuse":  # memory reuse overwrites an earlier value
        assert all(
            first.frames[0].line >= line for file, line in error.lines if first.frames[0].file.endswith(file)
        )
    assert first.eager is not None and first.compiled is not None
    assert first.eager < 1e-5 < 1e-3 < first.compiled
    assert any(kernel.name == first.kernel for kernel in divergence.capture.kernels)
