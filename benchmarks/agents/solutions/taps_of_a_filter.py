"""A solution."""

import torch
import torch.nn.functional as F


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def step(x: torch.Tensor, taps: torch.Tensor) -> torch.Tensor:
    """A causal filter over time: each tap is a matrix."""
    count = taps.shape[0]
    past = torch.cat([F.pad(x, (0, 0, n, 0))[:, : x.shape[1]] for n in range(count)], -1)
    return (past @ taps.reshape(-1, x.shape[-1])).tanh()


def make():
    return step


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    return [(rand(seed, 4, 20, 16), rand(seed + 1, 5, 16, 16) / 8)]
