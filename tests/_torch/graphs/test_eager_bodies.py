"""Operators that eager PyTorch dispatches for checkpoints and custom derivatives, against plain PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from dispatched import Dispatched
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts, set_checkpoint_early_stop

from compile_lens.engine.call import Call
from compile_lens.engine.local import perform
from compile_lens.record.compilation import Compilation

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]


class Both(torch.autograd.Function):
    """Returns several results, one of them saved, and takes a number."""

    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, y: torch.Tensor, scale: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        out = x.sin() * y
        ctx.save_for_backward(x, out)
        ctx.y, ctx.scale = y, scale
        return out, x.cos() * scale

    @staticmethod
    def backward(ctx: Any, first: torch.Tensor, second: torch.Tensor) -> Any:
        x, out = ctx.saved_tensors
        return first * x.cos() * ctx.y - second * x.sin() * ctx.scale + out.exp(), first * x.sin(), None


class Largest(torch.autograd.Function):
    """Has a result without a derivative."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        values, places = x.exp().max(1)
        ctx.mark_non_differentiable(places)
        ctx.save_for_backward(values, places)
        return values, places

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        values, places = ctx.saved_tensors
        return (
            torch.zeros_like(values)[:, None]
            .expand(4, 4)
            .scatter(1, places[:, None], (grad * values)[:, None])
        )


class Unlike(torch.autograd.Function):
    """Checks which gradients exist, which no graph of Dynamo shows."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x)
        return x.sin(), x.cos()

    @staticmethod
    def backward(ctx: Any, first: torch.Tensor | None, second: torch.Tensor | None) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        assert first is not None
        return first * x.cos() if second is None else first * x.cos() - second * x.sin()


def block(x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x @ x.sin()).exp() @ x


def ends_without_need(x: torch.Tensor) -> torch.Tensor:
    """No derivative needs the operators after the sine, so recomputation stops early."""
    return x.cos().sin() + x.detach().exp().log().sqrt()


def one(x: torch.Tensor) -> torch.Tensor:
    return checkpoint(block, x, use_reentrant=False) * 2


def early(x: torch.Tensor) -> torch.Tensor:
    return checkpoint(ends_without_need, x, use_reentrant=False)


def late(x: torch.Tensor) -> torch.Tensor:
    return checkpoint(ends_without_need, x, use_reentrant=False, early_stop=False)


def nested(x: torch.Tensor) -> torch.Tensor:
    def outer(x: torch.Tensor) -> torch.Tensor:
        return checkpoint(block, x.sin(), use_reentrant=False).cos() @ x

    return checkpoint(outer, x, use_reentrant=False).sin()


def drops(x: torch.Tensor) -> torch.Tensor:
    return checkpoint(lambda x: F.dropout(x.sin(), 0.5).exp(), x, use_reentrant=False)


def several(x: torch.Tensor) -> torch.Tensor:
    first, second = Both.apply(x, x.exp(), 3.0)
    return first * second


def unused(x: torch.Tensor) -> torch.Tensor:
    return Both.apply(x, x.exp(), 3.0)[0].sin()


def largest(x: torch.Tensor) -> torch.Tensor:
    values, places = Largest.apply(x)
    return values * places


def kept_in_a_checkpoint(x: torch.Tensor) -> torch.Tensor:
    def part(x: torch.Tensor) -> torch.Tensor:
        first, second = Both.apply(x.sin(), x, 3.0)
        return first + second.detach().exp()

    return checkpoint(part, x, use_reentrant=False)


def unlike(x: torch.Tensor) -> torch.Tensor:
    return Unlike.apply(x)[0]


def alike(x: torch.Tensor) -> torch.Tensor:
    first, second = Unlike.apply(x)
    return first * second


def reentrant(x: torch.Tensor) -> torch.Tensor:
    return checkpoint(block, x, use_reentrant=True)


def contexts() -> Any:
    return create_selective_checkpoint_contexts([torch.ops.aten.mm.default])


def selective(x: torch.Tensor) -> torch.Tensor:
    return checkpoint(block, x, use_reentrant=False, context_fn=contexts)


@torch.compiler.nested_compile_region
def region(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return (x @ w).relu(), x.exp()


@torch.compiler.nested_compile_region
def around(x: torch.Tensor) -> torch.Tensor:
    one, other = region(x, x)
    return one * other


def regions(x: torch.Tensor) -> torch.Tensor:
    for _ in range(2):
        x = around(x) + x
    return x.sin()


def found(function: Callable[..., Any], grad: bool = True) -> Compilation:
    (compilation,) = perform(Call.read(function, (torch.rand(4, 4, requires_grad=grad),)))[0].compilations
    return compilation


def dispatched(function: Callable[..., Any]) -> dict[str, dict[str, int]]:
    x = torch.rand(4, 4, requires_grad=True)
    with Dispatched() as forward:
        out = function(x)
    ones = torch.ones_like(out)
    with Dispatched() as backward:
        torch.autograd.grad(out, x, ones)
    return counts(forward, backward)


def counts(forward: Dispatched, backward: Dispatched) -> dict[str, dict[str, int]]:
    """Counts without allocations and ``unsafe_view``, which do no work."""
    return {
        phase: {n: count for n, count in seen.work.items() if "empty" not in n and "unsafe_view" not in n}
        for phase, seen in (("forward", forward), ("backward", backward))
    }


def counted(compilation: Compilation) -> dict[str, dict[str, int]]:
    assert compilation.eager is not None, compilation.eager_note
    return {
        phase: {op.name: op.count for op in compilation.eager if op.phase == phase}
        for phase in ("forward", "backward")
    }


@pytest.mark.parametrize(
    "function",
    [one, early, late, nested, drops, several, unused, largest, kept_in_a_checkpoint, alike, regions],
    ids=lambda function: str(function.__name__),
)
def test_each_operator_of_a_body_is_counted_where_eager_pytorch_dispatches_it(function: Any) -> None:
    assert counted(found(function)) == dispatched(function)


@pytest.mark.exhaustive
def test_parameters_of_modules_and_autocast_inside_of_a_checkpoint() -> None:
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    tail = torch.nn.Linear(8, 8)

    def run(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu"):
            return checkpoint(tail, checkpoint(layer, x, use_reentrant=False), use_reentrant=False).sum()

    x = torch.rand(2, 4, 8)
    compilation = perform(Call.read(run, (x,)))[0].compilations[0]
    with Dispatched() as forward:
        out = run(x)
    one = torch.ones_like(out)
    with Dispatched() as backward:
        torch.autograd.grad(out, [*layer.parameters(), *tail.parameters()], one)
    assert counted(compilation) == counts(forward, backward)


def test_the_stop_of_recomputation_is_that_of_the_call() -> None:
    assert dispatched(early)["backward"] != dispatched(late)["backward"]
    with set_checkpoint_early_stop(False):
        assert counted(found(early)) == dispatched(early) == dispatched(late)


@pytest.mark.cases(quick=3)
@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (unlike, "set_materialize_grads"),
        (reentrant, "use_reentrant=True"),
        (selective, "selective checkpoint"),
    ],
)
def test_what_no_graph_tells_has_a_reason_of_its_own(function: Any, reason: str) -> None:
    compilation = found(function)
    assert compilation.eager is None and reason in compilation.eager_note


@pytest.mark.parametrize("function", [reentrant, selective])
def test_without_a_backward_nothing_is_computed_again(function: Any) -> None:
    compilation = found(function, grad=False)
    assert compilation.eager is not None
    x = torch.rand(4, 4)
    with Dispatched() as seen:
        block(x)
    assert {op.name: op.count for op in compilation.eager} == seen.work


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (one, ["checkpoints"]),
        (several, ["functions"]),
        (kept_in_a_checkpoint, ["checkpoints"]),
    ],
)
def test_the_story_says_whose_bodies_they_are(function: Any, said: list[str]) -> None:
    made = perform(Call.read(function, (torch.rand(4, 4, requires_grad=True),)))[0]
    told = [s.key for s in made.story().sentences if s.key in ("bodies", "functions", "checkpoints")]
    assert told == said == [s.key for s in made.story("zh").sentences if s.key in told]


@pytest.mark.parametrize("within", [False, True])
def test_nested_tensors_are_named_as_the_reason(within: bool) -> None:
    def scaled(values: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        rows = torch.nested.nested_tensor_from_jagged(values, offsets)
        return rows.tanh().values()

    rows = torch.nested.nested_tensor([torch.ones(1, 2), torch.ones(4, 2)], layout=torch.jagged)
    call = (scaled, (torch.ones(6, 2), torch.tensor([0, 1, 6]))) if within else (torch.tanh, (rows,))
    record, _ = perform(Call.read(*call, None))
    assert record.ledger.total.eager_ops is None
    assert "nested tensors" in record.text("full") and "shape_env" not in record.text("full")
