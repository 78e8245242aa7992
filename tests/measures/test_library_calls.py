"""Matrix products that one line calls several times."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

import compile_lens
from compile_lens.measures.library_calls import repeated_calls

pytestmark = [pytest.mark.torch]

WEIGHTS = torch.rand(4, 16, 16)
UNEVEN = [torch.rand(16, 8 * n) for n in (1, 2, 3, 4)]


def experts(x: torch.Tensor) -> torch.Tensor:
    return torch.stack([(x @ w).tanh() for w in WEIGHTS]).sum(0)


def experts_in_a_loop(x: torch.Tensor) -> torch.Tensor:
    out = x
    for w in WEIGHTS:
        out = out + torch.addmm(x, x, w)
    return out


def steps(x: torch.Tensor) -> torch.Tensor:
    for w in WEIGHTS:
        x = (x @ w).tanh()
    return x


def uneven(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([x @ w for w in UNEVEN], 1)


def two(x: torch.Tensor) -> torch.Tensor:
    return sum((x @ w).tanh() for w in WEIGHTS[:2])


def on_lines_of_their_own(x: torch.Tensor) -> torch.Tensor:
    a = x @ WEIGHTS[0]
    b = x @ WEIGHTS[1]
    c = x @ WEIGHTS[2]
    return a.tanh() * b.tanh() * c.tanh()


def batched(x: torch.Tensor) -> torch.Tensor:
    return torch.bmm(x.expand(4, -1, -1), WEIGHTS).tanh().sum(0)


class Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return sum(layer(x).tanh() for layer in self.layers)


@pytest.mark.parametrize(("fn", "operator"), [(experts, "mm"), (experts_in_a_loop, "addmm")])
def test_calls_of_a_loop_that_need_nothing_of_each_other(
    fn: Callable[[torch.Tensor], torch.Tensor], operator: str
) -> None:
    capture = compile_lens.capture(fn, torch.rand(32, 16) if fn is experts else torch.rand(16, 16))
    [call] = repeated_calls(capture)
    assert (call.operator, call.count) == (operator, len(WEIGHTS))
    assert " @ w" in call.frame.text or "addmm" in call.frame.text
    text = " ".join(capture.text("short").split())
    expression = "x @ w" if fn is experts else "torch.addmm(x, x, w)"
    assert f"{operator} of `{expression}` is called 4 times, and no call needs another's result" in text


@pytest.mark.parametrize(
    "fn", [steps, uneven, two, on_lines_of_their_own, batched, Layers()], ids=lambda fn: type(fn).__name__
)
def test_calls_that_one_call_cannot_replace(fn: Callable[[torch.Tensor], torch.Tensor]) -> None:
    capture = compile_lens.capture(fn, torch.rand(32, 16), backward=False)
    assert repeated_calls(capture) == () and "stacked operands" not in capture.text("short")
