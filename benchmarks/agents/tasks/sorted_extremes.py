"""Sorting for a few elements costs calls."""

import torch

LIMITS = {"kernels": 1, "breaks": 0}


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def step(x: torch.Tensor) -> torch.Tensor:
    """The spread of each row, scaled by its extremes."""
    ordered = x.sort(dim=-1).values
    low, high = ordered[:, 0], ordered[:, -1]
    best = x.topk(1, dim=-1).values[:, 0]
    return (x - low[:, None]) / (high - low)[:, None] + best[:, None]


def make():
    return step


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    return [(rand(seed, 32, 64),)]
