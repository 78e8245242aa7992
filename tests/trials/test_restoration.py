"""A repeatable call: everything that it reaches is restored."""

from __future__ import annotations

import functools

import pytest
import torch
from torch import nn

from compile_lens.trials.restoration import SavedState

pytestmark = pytest.mark.torch

SHARED = torch.zeros(2)
TABLE = {"inner": [torch.zeros(2)]}


class Owner:
    def __init__(self) -> None:
        self.state = torch.zeros(2)
        self.norm = nn.BatchNorm1d(2)

    def step(self, x: torch.Tensor) -> torch.Tensor:
        self.state.add_(1)
        return self.norm(x)


def _helper() -> None:
    TABLE["inner"][0].add_(1)


def through_globals() -> None:
    SHARED.add_(1)
    _helper()


def through_a_nested_function() -> None:
    def inner() -> None:
        SHARED.add_(1)

    inner()


@pytest.mark.parametrize("fn", [through_globals, through_a_nested_function])
def test_globals_are_put_back(fn: object) -> None:
    reached = SavedState(fn)
    fn()  # type: ignore[operator]
    assert reached.changed()
    reached.reset()
    assert SHARED.tolist() == [0, 0] and TABLE["inner"][0].tolist() == [0, 0]
    assert not reached.changed()


def test_closures_defaults_partials_and_methods_are_put_back() -> None:
    cell, default, bound, owner = torch.zeros(2), torch.zeros(2), torch.zeros(2), Owner()

    def fn(given: torch.Tensor, *, more: torch.Tensor = default) -> None:
        for tensor in (cell, given, more):
            tensor.add_(1)
        owner.step(torch.ones(3, 2))

    call = functools.partial(fn, bound)
    reached = SavedState(call)
    call()
    assert cell.tolist() == default.tolist() == bound.tolist() == owner.state.tolist() == [1, 1]
    reached.reset()
    assert cell.tolist() == default.tolist() == bound.tolist() == owner.state.tolist() == [0, 0]
    assert int(owner.norm.num_batches_tracked) == 0
    method = SavedState(owner.step)
    owner.step(torch.ones(3, 2))
    method.reset()
    assert owner.state.tolist() == [0, 0] and owner.norm.running_mean.eq(0).all()


def test_what_nobody_wrote_to_is_not_written_to() -> None:
    kept = torch.tensor([1.0, float("nan")])
    reached = SavedState((kept,))
    reached.reset()
    assert not reached.changed() and kept._version == 0


def test_gradients_are_put_back() -> None:
    with_grad, without = (torch.ones(2, requires_grad=True) for _ in range(2))
    with_grad.grad = held = torch.full((2,), 5.0)
    reached = SavedState((with_grad, without))
    (with_grad * without).sum().backward()
    assert with_grad.grad.tolist() == [6, 6]
    reached.reset()
    assert with_grad.grad is held and held.tolist() == [5, 5] and without.grad is None


def test_a_module_is_as_it_was() -> None:
    assert SavedState(nn.Linear(2, 2)).changed() is False
