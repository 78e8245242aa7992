"""Graphs that torch traces without a call, against torch's own count of graphs."""

from __future__ import annotations

import re

import pytest
import torch
from torch._dynamo.utils import counters

import compile_lens

pytestmark = pytest.mark.torch


class Layer(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sin() + 1


def test_a_strict_export_is_told_and_counted_as_torch_does() -> None:
    torch._dynamo.reset()
    counters.clear()
    with compile_lens.watch() as program:
        torch.compile(lambda x: x + 1, backend="eager")(torch.ones(3))
        for size in (3, 4):
            torch.export.export(Layer(), (torch.ones(size),), strict=True)
        torch.export.export(Layer(), (torch.ones(3),), strict=False)
    (told,) = [note for note in program.record.notes if "torch.export" in note]
    found = re.match(r"Dynamo traced (\d+) graphs for torch\.export, which compiles nothing", told)
    line = test_a_strict_export_is_told_and_counted_as_torch_does.__code__.co_firstlineno + 6
    assert found and f"requested in test_watch_export.py:{line}" in told
    assert int(found[1]) + program.counts.graphs == counters["stats"]["unique_graphs"] == 3


def test_a_compile_has_no_word_of_it() -> None:
    torch._dynamo.reset()
    with compile_lens.watch() as program:
        torch.compile(Layer(), backend="eager")(torch.ones(3))
        compile_lens.capture(Layer(), torch.ones(3))
    assert program.counts.graphs == 1 and not program.record.notes
