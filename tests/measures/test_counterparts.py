"""Corresponding nodes of two programs, by a hand count: each node is named by the value that the test queries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from compile_lens import capture
from compile_lens.measures.diff.modules import counterparts

pytestmark = pytest.mark.torch

Program = Callable[..., Any]
X, Y = torch.rand(8, 8), torch.rand(8, 8)


def plain(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    a = x * y
    b = torch.relu(a + 1.0)
    c = b * a
    d = torch.exp(c) * x
    return d / b * a


def inserted(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    a = x * y
    b = torch.relu(a + 1.0)
    b = b * 2.0 + torch.sigmoid(x)
    c = b * a
    d = torch.exp(c) * x
    return d / b * a


def product_first(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    a = x * y
    b = torch.sin(a) * x
    return b


def product_last(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    a = torch.sinh(x + y)
    b = torch.cos(y) * 3.0
    return a - b


# By hand. Inductor's graph numbers products: ``b * 2.0`` is the second of ``inserted``; later ones move up by one.
SHIFTED = {
    "mul": "mul",
    "add": "add",
    "relu": "relu",
    "mul_1": "mul_2",
    "exp": "exp",
    "mul_2": "mul_3",
    "div": "div",
}


@pytest.mark.parametrize(
    ("a", "b", "same", "only"),
    [
        (plain, inserted, {**SHIFTED, "mul_3": "mul_4"}, ([], ["add_1", "mul_1", "sigmoid"])),
        # Both have a product called ``mul``: of an input, and of a cosine. No other node matches either.
        (
            product_first,
            product_last,
            {},
            (["mul", "mul_1", "sin"], ["add", "cos", "mul", "sinh", "sub"]),
        ),
    ],
)
def test_counterparts_are_what_is_computed(
    a: Program, b: Program, same: dict[str, str], only: tuple[list[str], list[str]]
) -> None:
    captures = [capture(f, X, Y) for f in (a, b)]
    for turned in (False, True):
        found = counterparts(*(reversed(captures) if turned else captures))
        pairs = {
            one[2]: two[2]
            for one, two in found.lowered
            if one[1] == "inference" and not one[2].startswith("arg")
        }
        assert pairs == ({two: one for one, two in same.items()} if turned else same)
        lone = [sorted(address[2] for address, how in own.items() if not how) for own in found.differ]
        assert lone == list(reversed(only) if turned else only)
