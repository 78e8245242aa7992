"""Calls that run in eager PyTorch and raise in compiled code: ``verify`` has a verdict, with the error that plain
``torch.compile`` raises."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from full_text import full

from compile_lens import UsageError, capture

pytestmark = pytest.mark.torch


def hessian(x: torch.Tensor) -> torch.Tensor:
    (g,) = torch.autograd.grad(x.pow(3).sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    return h


def penalty(x: torch.Tensor) -> torch.Tensor:
    (g,) = torch.autograd.grad((x.sin() * x).sum(), x, create_graph=True)
    g.pow(2).sum().backward()
    return g.detach()


def noisy(x: torch.Tensor) -> torch.Tensor:
    return hessian(x) + torch.rand_like(x)


def broken(x: torch.Tensor, leave: bool = True) -> torch.Tensor:
    if leave:
        torch._dynamo.graph_break()
    return x + 1


def raised_by_torch(fn: Callable[..., Any], x: torch.Tensor, **options: Any) -> str:
    """Return the first sentence of the error that plain ``torch.compile`` raises."""
    torch._dynamo.reset()
    with pytest.raises(Exception) as caught:  # any error of torch
        torch.compile(fn, **options)(copy.deepcopy(x))
    torch._dynamo.reset()
    return str(caught.value).splitlines()[0]


@pytest.mark.exhaustive
@pytest.mark.parametrize("fn", [hessian, penalty, noisy], ids=lambda fn: fn.__name__)
def test_a_double_backward_is_not_compared(fn: Callable[..., Any]) -> None:
    x = torch.linspace(0, 1, 5, requires_grad=True)
    message = raised_by_torch(fn, x)
    assert "double backward" in message
    c = capture(fn, x)
    grad = copy.deepcopy(x.grad)
    report = c.verify()
    assert report.verdict == "was not compared" and report.ok is None and report.comparisons == ()
    assert report.same_code is None
    [(name, reason)] = report.not_compared
    assert name.endswith(fn.__name__) and message in reason and "eager PyTorch did not" in reason
    assert message in " ".join(full(report).split())
    assert torch.equal(x, torch.linspace(0, 1, 5))
    assert x.grad is grad is None or torch.equal(x.grad, grad)


@pytest.mark.full
def test_inputs_that_dynamo_refuses_are_not_compared() -> None:
    x = torch.rand(4)
    message = raised_by_torch(broken, x, fullgraph=True)
    whole = capture(broken, x, False, fullgraph=True)
    report = whole.verify(broken, x, True)
    [(_, reason)] = report.not_compared
    assert report.verdict == "was not compared" and message in reason
    assert whole.verify(broken, x, False).ok


@pytest.mark.full
def test_what_eager_raises_is_still_an_error() -> None:
    def picky(x: torch.Tensor) -> torch.Tensor:
        return x @ torch.ones(3, 3)

    with pytest.raises(UsageError, match="without a compiler"):
        capture(picky, torch.rand(3, 3)).verify(picky, torch.rand(4))


@pytest.mark.full
def test_code_for_an_absent_device_that_raises_is_not_compared() -> None:
    pytest.importorskip("triton")
    x = torch.rand(5, requires_grad=True)
    report = capture(hessian, x).verify(target="h100")
    assert report.verdict == "was not compared" and "compared with the graph" not in report.runner
    [(_, reason)] = report.not_compared
    assert "double backward" in reason


@pytest.mark.full
def test_a_backward_that_only_raises_past_the_inputs_is_not_compared() -> None:
    """Torch's CompiledFunctionBackward has no edge to ``w``: ``backward()`` raises, ``autograd.grad`` finds no use."""

    def slope(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        (g,) = torch.autograd.grad((x @ w).tanh().sum(), x, create_graph=True)
        return (g.norm(2, dim=1) - 1).square().sum()

    x, w = torch.rand(3, 4, requires_grad=True), torch.rand(4, 4, requires_grad=True)
    torch._dynamo.reset()
    compiled = torch.compile(slope)(*(t.detach().clone().requires_grad_() for t in (x, w)))
    with pytest.raises(RuntimeError, match="double backward") as caught:
        compiled.backward()
    torch._dynamo.reset()
    report = capture(slope, x, w).verify()
    assert report.verdict == "agrees in part"
    [(name, reason)] = report.not_compared
    assert name == "gradients" and str(caught.value) in reason


def test_a_result_that_ran_eagerly_has_no_backward_that_was_built() -> None:
    """Its gradient cannot start from ones: no operator of torch fills a sparse tensor."""
    x = torch.rand(4, 4, requires_grad=True)
    report = capture(lambda x: x.to_sparse(), x, build=True)
    assert report.nothing_compiled and not any("backward was built" in note for note in report.notes)
