"""A filter by shifted products of matrices."""

import torch
import torch.nn.functional as F

LIMITS = {"kernels": 4, "breaks": 0}


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def step(x: torch.Tensor, taps: torch.Tensor) -> torch.Tensor:
    """A causal filter over time: each tap is a matrix."""
    out = x @ taps[0]
    for number in range(1, taps.shape[0]):
        past = F.pad(x, (0, 0, number, 0))[:, : x.shape[1]]
        out = out + past @ taps[number]
    return out.tanh()


def make():
    return step


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    return [(rand(seed, 4, 20, 16), rand(seed + 1, 5, 16, 16) / 8)]
