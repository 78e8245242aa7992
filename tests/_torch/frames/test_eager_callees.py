"""Functions of torch and of ours that run eagerly around a graph break."""

from __future__ import annotations

import pytest
import torch
from dispatched import Dispatched
from torch import nn

from compile_lens import capture

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


def test_a_capture_in_a_captured_function_breaks_at_its_own_line() -> None:
    def within(x: torch.Tensor) -> torch.Tensor:
        capture(torch.sin, x)
        return x + 1

    captured = capture(within, X)
    (ending,) = captured.breaks
    (frame,) = ending.frames
    assert (frame.file, frame.text) == (__file__, "capture(torch.sin, x)")
    assert "Call compile_lens outside" in ending.hint
    assert all("within" in c.function for c in captured.compilations)
