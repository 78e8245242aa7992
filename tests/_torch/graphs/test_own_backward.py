"""Functions that run a backward themselves and keep its graph: a building capture runs them as torch does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from full_text import full

from compile_lens import capture

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore::UserWarning")]


def energy(pos: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return ((pos @ w).tanh() ** 2).sum()


def forces(pos: torch.Tensor, w: torch.Tensor) -> Any:
    e = energy(pos, w)
    (f,) = torch.autograd.grad(e, pos, create_graph=True)
    return e, -f


def twice(pos: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    e = energy(pos, w)
    torch.autograd.grad(e, pos, retain_graph=True)
    return torch.autograd.grad(e, pos)[0] * 2


def accumulated(pos: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    e = energy(pos, w)
    e.backward(retain_graph=True)
    e.backward()
    return e.detach() + 1


def penalty(pos: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    e = energy(pos, w)
    (f,) = torch.autograd.grad(e, pos, create_graph=True)
    return (f * f).sum() + e


def once(pos: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.autograd.grad(energy(pos, w), pos)[0] + 1


FUNCTIONS = [forces, twice, accumulated, penalty, once]


@pytest.fixture(autouse=True)
def fresh() -> Any:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def inputs() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    return torch.randn(6, 3, requires_grad=True), torch.randn(3, 5)


def donated(found: Any) -> bool:
    """Return True if the backward's code may reuse the memory of saved tensors."""
    return any(m.donated for c in found.compilations for m in c.memory if m.phase == "backward")


@pytest.mark.full
@pytest.mark.cases(quick=1, full=1)
@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda fn: fn.__name__)
def test_a_program_that_torch_runs_is_captured_with_code(fn: Callable[..., Any]) -> None:
    record = capture(fn, *inputs(), build=True)
    assert record.failure is None and any(k.phase == "backward" for k in record.kernels)
    assert donated(record) is (fn is once)
    graphs = {c.id for c in record.compilations if "dynamo" in c.graphs}
    assert all(sum(m.phase == "backward" for m in c.memory) <= 1 for c in record.compilations) and graphs


@pytest.mark.full
@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda fn: fn.__name__)
@pytest.mark.cases(full=1)
def test_verify_runs_it_too(fn: Callable[..., Any]) -> None:
    report = capture(fn, *inputs()).verify(fn, *inputs())
    if fn in (forces, penalty):  # plain torch.compile refuses the derivative of the derivative
        result = torch.compile(fn)(*inputs())
        with pytest.raises(RuntimeError, match="double backward"):
            torch.stack(
                [r.sum() for r in (result if isinstance(result, tuple) else (result,))]
            ).sum().backward()
        assert report.ok is None and "double backward" in full(report), full(report)
        return
    assert report.ok is True, full(report)


@pytest.mark.exhaustive
def test_code_for_inference_alone_takes_no_frames_of_ours() -> None:
    """With ``backward=False`` torch lowers the backward at its first run, within the program's own frames."""
    record = capture(twice, *inputs(), build=True, backward=False)
    assert {c.file for c in record.compilations} == {__file__}
