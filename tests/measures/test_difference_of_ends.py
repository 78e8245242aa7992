"""Inputs and results: programs whose results differ although they have the same operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from full_text import full

import compile_lens
from compile_lens import capture

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]

X, Y = torch.rand(8, 8), torch.rand(8, 8)


class Pair(torch.nn.Module):
    """Two layers of the same shape."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.a, self.b = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.b(self.a(x).relu())


class Turned(Pair):
    """Runs the second layer first."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.a(self.b(x).relu())


class OtherNames(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.two(self.one(x).relu())


def first(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x.sum(0) + 1


def second(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return y.sum(0) + 1


def both(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    a, b = x.sin(), x.cos()
    return a, b


def turned(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    a, b = x.sin(), x.cos()
    return b, a


def chain(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    a = x.sin()
    return a, a.cos()


def last(x: torch.Tensor) -> torch.Tensor:
    a = x.sin()
    return a.cos()


OTHERS: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...], str]] = {
    "argument": (first, second, (X, Y), "reads argument 2 in place of argument 1"),
    "key": (
        lambda d: d["a"] @ d["b"],
        lambda d: d["b"] @ d["a"],
        ({"a": X, "b": Y},),
        "reads argument 1 (b) in place of argument 1 (a)",
    ),
    "layer": (
        Pair(),
        Turned(),
        (X,),
        "reads self_modules_b_parameters_weight in place of self_modules_a_parameters_weight",
    ),
    "order": (both, turned, (X,), "results: the same, in another order"),
    "fewer": (chain, last, (X,), "results: 2 of the graph became 1"),
}


@pytest.mark.full
@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("target", [None, "h100"])
@pytest.mark.cases(full=4)
def test_programs_that_compute_otherwise_differ(name: str, target: str | None) -> None:
    one, two, args, says = OTHERS[name]
    eager = [torch.utils._pytree.tree_leaves(fn(*args)) for fn in (one, two)]
    assert len(eager[0]) != len(eager[1]) or not all(map(torch.equal, *eager)), "eager PyTorch says so too"
    difference = compile_lens.diff(*(capture(fn, *args, target=target) for fn in (one, two)))
    causes = [change.text for change in difference.causes]
    assert any(text.startswith(says) for text in causes), causes
    assert "Nothing differs" not in full(difference)


def other_names(q: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    s, c = q.sin(), q.cos()
    return s, c


class Renamed(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sin()


class Before(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sin()


SAME: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...]]] = {
    "variables": (both, other_names, (X,)),
    "layers": (Pair(), OtherNames(), (X,)),
    "classes": (Before(), Renamed(), (X,)),
}


@pytest.mark.parametrize("name", SAME)
def test_other_names_are_no_difference(name: str) -> None:
    one, two, args = SAME[name]
    difference = compile_lens.diff(*(capture(fn, *args) for fn in (one, two)))
    assert difference.changes == (), full(difference)


def test_a_number_that_becomes_another_type_is_a_difference() -> None:
    difference = compile_lens.diff(*(capture(lambda x, n: x * n, X, n) for n in (2, 2.0)))
    assert difference.causes


def in_order(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    a = torch.sin(x)
    b = torch.cos(y)
    return a, b


def moved(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    b = torch.cos(y)
    a = torch.sin(x)
    return a, b


def sums(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    a = (x * 2).sum(1)
    b = (y + 1).sum(0)
    return a - b


def sums_moved(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    b = (y + 1).sum(0)
    a = (x * 2).sum(1)
    return a - b


def sums_turned(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    b = (y + 1).sum(0)
    a = (x * 2).sum(1)
    return b - a


@pytest.mark.parametrize("target", [None, "h100"])
@pytest.mark.parametrize("pair", [(in_order, moved), (sums, sums_moved)], ids=["two results", "one"])
def test_lines_that_were_moved_are_no_difference(pair: tuple[Any, Any], target: str | None) -> None:
    """Torch numbers the inputs of the graph in the opposite order."""
    ours = [torch.utils._pytree.tree_leaves(fn(X, Y)) for fn in pair]
    assert all(map(torch.equal, *ours)), "eager PyTorch says so too"
    one, two = (capture(fn, X, Y, target=target) for fn in pair)
    assert [c.code["inference"].count("arg0_1, arg1_1 = args") for c in (one, two)] == [1, 1]
    difference = compile_lens.diff(one, two)
    assert difference.changes == (), full(difference)
    assert compile_lens.diff(one, capture(sums_turned, X, Y, target=target))


def test_what_calls_the_kernels_otherwise_is_told_of_moved_lines() -> None:
    one = capture(in_order, X, Y)
    with torch._inductor.config.patch(size_asserts=False):
        two = capture(moved, X, Y)
    (change,) = compile_lens.diff(one, two).at("code")
    assert "the code that calls the kernels" in change.text
    assert any("assert_size_stride" in fact for fact in change.facts)
