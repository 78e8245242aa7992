"""A graph that a watch retained is lowered with the settings at the time of the program's compile."""

from __future__ import annotations

import pytest
import torch
from torch._inductor import config

from compile_lens._torch.watch.retained_graphs import RetainedGraph, settings_of

pytestmark = pytest.mark.torch


def graph_of(settings: dict[str, dict[str, object]]) -> RetainedGraph:
    gm = torch.fx.GraphModule({}, torch.fx.Graph())
    return RetainedGraph(graph_of.__code__, gm, (), None, False, (), {}, settings)


def test_settings_are_those_of_the_time_and_then_as_before() -> None:
    now = config.max_fusion_size
    kept = graph_of({config.__name__: {"max_fusion_size": now + 1, "a setting of another torch": 3}})
    with settings_of(kept):
        assert config.max_fusion_size == now + 1
    assert config.max_fusion_size == now
