"""Freezing makes the graph anew and works out what depends on weights alone. The oracles are the generated text, where
each number stands on one line of the program only, and torch's own source lines of the frozen graph."""

from __future__ import annotations

import inspect
import re

import pytest
import torch
from torch._inductor import config

from compile_lens import capture
from compile_lens.results.capture import Capture

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3)
        self.norm = torch.nn.BatchNorm2d(8)
        self.weight = torch.nn.Parameter(torch.rand(8, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(self.conv(x))
        y = torch.relu(y).mean((2, 3)) * 1.375
        folded = self.weight * 2.625
        z = y @ folded
        again = torch.sin(z) + 3.875
        return again * torch.sin(z)


def line(text: str) -> int:
    source, first = inspect.getsourcelines(Model)
    return next(n for n, written in enumerate(source, first) if text in written)


def frozen(everywhere: bool) -> Capture:
    """By an option for the backend alone Dynamo keeps the weights as inputs, and nothing can be worked out of them."""
    model = Model().eval()
    with torch.no_grad(), config.patch(freezing=everywhere):
        return capture(model, torch.rand(2, 3, 8, 8), options=None if everywhere else {"freezing": True})


@pytest.mark.parametrize("everywhere", [False, True])
def test_a_frozen_graph_is_linked_to_the_lines(everywhere: bool) -> None:
    found = frozen(everywhere)
    graph = found.compilations[0].graphs["inference"]
    assert not [n.name for n in graph.nodes if not n.origins]
    for node in graph.calls:
        if node.frames:
            assert node.innermost[0].line in {
                f.line for f in found.chain.lines(("0/0", "inference", node.name))
            }
    for number in ("1.375", "3.875") if everywhere else ("1.375", "2.625", "3.875"):
        computing = {k.name for k in found.kernels if re.search(rf"\b{re.escape(number)}\d*\b", k.source)}
        reached = {k.name for k in found.chain.kernels(__file__, line(number))}
        assert computing and computing <= reached, number
    assert found.coverage().total.line_share == 1


def test_what_was_worked_out_while_compiling_is_said_as_such() -> None:
    found = frozen(True)
    assert not any("2.625" in k.source for k in found.kernels)
    assert found.chain.kernels(__file__, line("2.625")) == ()
    ends = {found.chain.why_not(a) for a in found.chain.descendants(("0/0", "dynamo", "folded"))} - {""}
    assert ends == {"a constant: what it holds was worked out while the graph was compiled"}


def test_equal_nodes_that_freezing_merged_are_all_origins_of_the_one_that_stays() -> None:
    found = frozen(False)
    (sine,) = (n for n in found.compilations[0].graphs["inference"].nodes if n.target == "aten.sin.default")
    assert {f.line for f in found.chain.lines(("0/0", "inference", sine.name))} == {
        line("again ="),
        line("again *"),
    }
    (merging,) = (p for p in found.compilations[0].passes if p.name == "fx_graph_cse")
    assert merging.nodes_before - merging.nodes_after == 1 and len(merging.rewrites) == 1
