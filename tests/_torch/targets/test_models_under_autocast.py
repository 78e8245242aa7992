"""Models under the device's autocast, with their backward: every product has 16 bits, as on the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from gpt2 import Size, example
from torch import nn

from compile_lens import capture

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]

PRODUCTS = (
    "aten.mm.",
    "aten.addmm.",
    "aten.bmm.",
    "aten.convolution.",
    "aten._scaled_dot_product_cudnn_attention.",
)


class Experts(nn.Module):
    """A mixture of four experts, two for each row."""

    def __init__(self, width: int = 32, count: int = 4) -> None:
        super().__init__()
        self.gate = nn.Linear(width, count)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 64), nn.GELU(), nn.Linear(64, width)) for _ in range(count)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights, chosen = self.gate(x).softmax(-1).topk(2, -1)
        total = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            total = total + expert(x) * (weights * (chosen == number)).sum(-1, keepdim=True)
        return total


class Denoiser(nn.Module):
    """A block of a diffusion model: convolutions, a time embedding, attention over the pixels."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.norm, self.time = nn.GroupNorm(8, width), nn.Linear(width, width)
        self.first, self.second = (nn.Conv2d(width, width, 3, padding=1) for _ in range(2))

    def forward(self, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        h = self.first(F.silu(self.norm(x))) + self.time(F.silu(t))[:, :, None, None]
        h = self.second(F.silu(h))
        q = h.flatten(2).transpose(1, 2).contiguous()[:, None]  # fused kernels read dense rows
        return x + h + F.scaled_dot_product_attention(q, q, q)[:, 0].transpose(1, 2).reshape(h.shape)


def gpt2() -> tuple[nn.Module, Any]:
    return example(Size(layers=1, heads=4, width=64, tokens=32, vocabulary=128))


def experts() -> tuple[nn.Module, Any]:
    return Experts(), (torch.rand(8, 32, requires_grad=True),)


def denoiser() -> tuple[nn.Module, Any]:
    return Denoiser(), (torch.rand(2, 32, 8, 8, requires_grad=True), torch.rand(2, 32))


@pytest.mark.full
@pytest.mark.parametrize("make", [gpt2, experts, denoiser], ids=lambda f: f.__name__)
@pytest.mark.cases(full=1)
def test_a_step_of_training(make: Callable[[], tuple[nn.Module, Any]]) -> None:
    model, inputs = make()

    def step(*args: Any) -> Any:
        with torch.autocast("cuda", torch.bfloat16):
            return model(*args)

    found = capture(step, *inputs, target="h100")
    (compilation,) = found.compilations
    assert compilation.phases == ("forward", "backward") and found.coverage().unexplained == ()
    for phase in compilation.phases:
        calls = [n for n in compilation.graphs[phase].calls if n.target.startswith(PRODUCTS)]
        assert calls and {n.outputs[0].dtype for n in calls} == {"bfloat16"}
    assert found.target is not None and {q.kind for q in found.target.queries} <= {"chosen"}
