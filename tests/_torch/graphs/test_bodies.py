"""Bodies that tracing inlines (a custom backward, a checkpointed block): their lines lead to their own kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from compile_lens import capture

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]


class Clamped(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
        (y,) = ctx.saved_tensors
        c = torch.clamp(g, -1.5, 1.5)
        e = c.tanh()
        return e * y * 3.75


def own(x: torch.Tensor) -> torch.Tensor:
    h = x.cos()
    h = Clamped.apply(h)
    return h.log()


def leaf(*shape: int) -> torch.Tensor:
    return torch.linspace(0.1, 1, int(torch.tensor(shape).prod())).reshape(shape).requires_grad_()


def line_of(text: str) -> int:
    with open(__file__, encoding="utf-8") as file:
        return next(i for i, line in enumerate(file, 1) if line.strip() == text)


@pytest.mark.parametrize("target", [None, "h100", "mps"])
def test_lines_of_a_users_own_backward(target: str | None) -> None:
    record = capture(own, leaf(64), target=target)
    for text in ("c = torch.clamp(g, -1.5, 1.5)", "e = c.tanh()", "return e * y * 3.75"):
        (kernel,) = record.chain.kernels(__file__, line_of(text))
        assert kernel.phase == "backward", text
    (forward, backward) = record.chain.kernels(__file__, line_of("y = x.exp()"))
    assert (forward.phase, backward.phase) == ("forward", "backward")  # recomputed in the backward
    joint = {n.name: n for n in record.compilations[0].graphs["joint"].nodes}
    innermost = {name: n.frames[-1].line for name, n in joint.items() if n.frames}
    assert innermost["clamp_min"] == innermost["clamp_max"] == line_of("c = torch.clamp(g, -1.5, 1.5)")
    assert not joint["tanh"].derivative and joint["div"].derivative  # autograd derives log


def test_numbers_of_a_users_own_backward_lead_to_the_operator_that_has_them() -> None:
    """The oracle is the program text, in which each number stands on one Python line only."""
    record = capture(own, leaf(64))
    (kernel,) = (k for k in record.kernels if k.phase == "backward")
    bodies = dict(record.compilations[0].graphs["dynamo"].subgraphs)
    line = {n.name: n.frames[-1].line for n in bodies["bwd_body_0"].nodes if n.frames}
    for written, origin, dynamo in (
        ("(-1.5)", "clamp_min", "c"),
        ("(1.5)", "clamp_max", "c"),
        ("(3.75)", "mul_1", "mul_1"),
    ):
        numbers = [n for n, text in enumerate(kernel.source.splitlines(), 1) if written in text]
        assert numbers
        origins = {o for entry in kernel.lines if entry.line in numbers for o in entry.origins}
        assert origins == {origin}, written
        assert record.chain.kernels(__file__, line[dynamo])


def test_the_derivatives_of_a_checkpointed_block_are_of_its_operators() -> None:
    def block(x: torch.Tensor, w1: torch.Tensor, w2: torch.Tensor) -> torch.Tensor:
        return F.gelu(x @ w1) @ w2

    def fn(x: torch.Tensor, w1: torch.Tensor, w2: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (checkpoint(block, x, w1, w2, use_reentrant=False) + y).sin()

    found = capture(fn, *(leaf(8, 8) for _ in range(4))).compilations[0]
    names = {n.name: n.target for _, body in found.graphs["dynamo"].subgraphs for n in body.nodes}
    made = [n for n in found.graphs["joint"].nodes if n.derivative]
    of = {n.name: {names.get(o.rpartition("/")[2], o) for o in n.origins} for n in made}
    for node in made:
        if node.target.startswith("aten.mm"):
            assert of[node.name] <= {"operator.matmul"}, node
        if "erf" in node.target or "exp" in node.target:
            assert all("gelu" in target for target in of[node.name]), node
    assert {t for targets in of.values() for t in targets} >= {"operator.matmul"}


@pytest.mark.parametrize(
    ("fn", "moved"),
    [
        (lambda a, b: torch._foreach_neg_([a, b]), 16_000),
        (lambda a, b: torch._foreach_mul_([a, b], 2.0), 16_000),
        (lambda a, b: a.add_(b), 12_000),
        (lambda a, b: a.uniform_(), 4_000),
        (lambda a, b: a.bernoulli_(0.5), 4_000),
        (lambda a, b: a.bernoulli_(b), 8_000),
    ],
)
def test_what_an_operator_in_place_moves(fn: Callable[..., object], moved: int) -> None:
    """By hand, with 1,000 floats each: the tensor that is written counts even if nothing is returned."""
    ops = capture(fn, torch.rand(1000), torch.rand(1000)).compilations[0].eager
    assert ops is not None and [op.nbytes for op in ops] == [moved], ops


def test_a_node_of_a_body_says_why_it_has_no_origin_only_where_it_has_none() -> None:
    """The reason applies to a node of a body, not to an input or a constant of the calling graph."""

    def branches(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda y: y.sin() * 2, lambda y: y.cos(), (x,))

    record = capture(branches, torch.rand(4, requires_grad=True))
    bodies = [body for graph in record.compilations[0].graphs.values() for _, body in graph.subgraphs]
    nodes = [node for body in bodies for node in body.nodes]
    assert len(nodes) > 8
    assert not [n.name for n in nodes if n.origins and n.no_origin]
    assert not [n.name for n in nodes if "compiler added" in n.no_origin or "constant" in n.no_origin]
