"""Inputs that a graph writes to, as reported to CUDA graphs."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from compile_lens._torch.inductor.cuda_graphs import _mutated
from compile_lens.record.cuda_graphs import MutatedInput


def test_an_input_is_named_with_what_writes_into_it() -> None:
    graph = torch.fx.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    total = graph.call_function(torch.ops.aten.add.Tensor, (x, y))
    written = graph.call_function(torch.ops.aten.copy_.default, (y, total))
    graph.output((total,))
    lowering = SimpleNamespace(module=torch.fx.GraphModule(torch.nn.Module(), graph), mutated_input_idxs=[1])
    assert _mutated(lowering, static=()) == (MutatedInput("y", written.name, False),)
    assert _mutated(lowering, static=(1,)) == (MutatedInput("y", written.name, True),)
