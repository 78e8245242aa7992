"""Functions of torch and of ours that run eagerly around a graph break."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from dispatched import Dispatched
from plain_graphs import compiled
from torch import nn

from compile_lens import Capture, capture, diff, expect, support, watch

pytestmark = pytest.mark.torch

X = torch.rand(4, 4)


class Broken(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        torch._dynamo.graph_break()
        return x + 1


class Around(nn.Module):
    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers, self.norm = nn.Sequential(*layers), nn.LayerNorm(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.layers(x * 2))


class Loop(Around):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


def eager_functions(module: nn.Module) -> set[str]:
    return {skip.function for skip in capture(module, X).skipped}


@pytest.mark.full
@pytest.mark.skipif(
    torch.__version__.startswith("2.11."), reason="this torch skips them before it asks Dynamo"
)
def test_layers_beside_a_break_in_a_container() -> None:
    layers = nn.Linear(4, 4), Broken(), nn.ReLU(), nn.Sequential(nn.Tanh())
    named = {"Sequential.forward", "Linear.forward", "ReLU.forward", "Tanh.forward"}
    assert eager_functions(nn.Sequential(*layers)) == named
    assert eager_functions(Around(*layers)) == named  # the norm is compiled, in what follows the break
    compiled = {
        n.target
        for c in capture(nn.Sequential(*layers), X).compilations
        for g in c.phases
        for n in c.graphs[g].nodes
    }
    with Dispatched() as dispatched:
        nn.Sequential(*layers)(X)
    assert {"aten.relu.default", "aten.tanh.default"} <= set(dispatched.work)
    assert not {"aten.relu.default", "aten.tanh.default", "aten.addmm.default"} & compiled


@pytest.mark.full
def test_layers_that_are_compiled_or_whose_caller_is_named() -> None:
    assert eager_functions(nn.Sequential(nn.Linear(4, 4), nn.ReLU())) == set()
    assert eager_functions(nn.TransformerEncoderLayer(4, 1, 8)) == set()
    assert eager_functions(Loop(nn.Linear(4, 4), Broken(), nn.ReLU())) == {"forward"}


def captures(x: torch.Tensor) -> torch.Tensor:
    capture(torch.sin, x)
    return x + 1


def expects(x: torch.Tensor) -> torch.Tensor:
    expect(torch.sin, x).launches(1).graph_breaks(0)
    return x + 1


def reads(x: torch.Tensor) -> torch.Tensor:
    str(SAVED[0])
    return x + 1


def differs(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    diff(SAVED[0], SAVED[0])
    return y + SAVED[0].cost().total


def asks(x: torch.Tensor) -> torch.Tensor:
    support("sin")
    return x + 1


def watches(x: torch.Tensor) -> torch.Tensor:
    with watch():
        y = x.sin()
    return y + 1


SAVED: list[Capture] = []


@pytest.mark.parametrize("program", [captures, expects, reads, differs, asks, watches])
def test_our_calls_in_a_captured_function_break_at_their_own_lines(program: Any) -> None:
    """No line of ours stands for one of the program, and plain ``torch.compile`` makes as many graphs."""
    SAVED[:] = [capture(torch.cos, X)]
    captured = capture(program, X)
    assert captured.breaks and not captured.missing
    for ending in captured.breaks:
        assert [frame.file for frame in ending.frames] == [__file__]
        assert "Call compile_lens outside" in ending.hint
    assert {skip.function for skip in captured.skipped} <= {program.__name__}
    assert all(program.__name__ in c.function for c in captured.compilations)
    assert compiled(program, [(X,)]) == sum(bool(c.phases) for c in captured.compilations)
