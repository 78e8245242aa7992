"""The graph that checks kernel values: the nodes that compute a value that a kernel may compute."""

from __future__ import annotations

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from compile_lens._torch.graphs.reference_run import ReferenceGraph

pytestmark = pytest.mark.torch


def test_values_are_what_is_computed_and_no_view_copy_or_constant() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        largest, _ = (x.view(-1) + 1).clone().max(0)
        return largest * torch.zeros(3) + torch.rand(3)

    graph = ReferenceGraph(make_fx(program, tracing_mode="fake")(torch.rand(2, 3)))
    # ``rand``, whose numbers differ in every run, has a value, and so do the nodes computed from it.
    assert graph.values == ["add", "getitem", "getitem_1", "mul", "rand", "add_1"]
    assert {name for name in graph.values if name in graph.reasons} == {"rand", "add_1"}
