"""Ranks that compile the same number of operators, but other ones, in a graph or in a nested graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.utils.checkpoint import checkpoint

from compile_lens import rehearse

pytestmark = [pytest.mark.torch, pytest.mark.full, pytest.mark.filterwarnings("ignore")]

Operator = Callable[[torch.Tensor], torch.Tensor]


class Own(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: torch.Tensor, operator: Operator) -> torch.Tensor:
        return operator(x)

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        return gradient, None


def plain(operator: Operator, x: torch.Tensor) -> torch.Tensor:
    return operator(x) + 1


def checkpointed(operator: Operator, x: torch.Tensor) -> Any:
    return checkpoint(lambda y: operator(y) * 2, x, use_reentrant=False)


def branch(operator: Operator, x: torch.Tensor) -> Any:
    return torch.cond(x.sum() > 0, lambda y: operator(y), lambda y: y + 1, (x,))


def own_derivative(operator: Operator, x: torch.Tensor) -> Any:
    return Own.apply(x, operator) * 2


def after_a_break(operator: Operator, x: torch.Tensor) -> torch.Tensor:
    torch._dynamo.graph_break()
    return operator(x * 2)


@pytest.mark.parametrize("function", [plain, checkpointed, branch, own_derivative, after_a_break])
def test_another_operator_on_one_rank_is_a_difference(function: Callable[..., Any]) -> None:
    def program(operators: tuple[Operator, Operator]) -> None:
        operator = operators[dist.get_rank()]
        call = torch.compile(lambda x: function(operator, x), backend="eager")
        call(torch.ones(3, requires_grad=True))

    assert not rehearse(program, (torch.sin, torch.sin), world_size=2).differences
    (graphs,) = rehearse(program, (torch.sin, torch.cos), world_size=2).at("graphs")
    (one, ranks), (other, others) = graphs.values
    assert "sin" in one and "cos" in other and (ranks, others) == ((0,), (1,))
