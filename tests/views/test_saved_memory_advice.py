"""The short text advises saving less for the backward if that is a large part of the peak."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import compile_lens

pytestmark = [pytest.mark.torch]

ADVICE = "torch.utils.checkpoint around it"


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(16, 64), nn.Linear(64, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.two(torch.nn.functional.gelu(self.one(x)))


def text(fn: nn.Module) -> str:
    torch.manual_seed(0)
    return " ".join(compile_lens.capture(fn, torch.rand(256, 16)).text("short").split())


@pytest.mark.full
def test_activations_that_fill_the_peak() -> None:
    assert ADVICE in text(nn.Sequential(*(Block() for _ in range(4))))


def test_nothing_is_proposed_where_little_is_saved() -> None:
    class Checkpoints(nn.Sequential):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for block in self:
                x = checkpoint(block, x, use_reentrant=False)
            return x.sin()

    assert ADVICE not in text(Checkpoints(Block()))
    assert ADVICE not in text(nn.Sequential(nn.Linear(16, 16)))
