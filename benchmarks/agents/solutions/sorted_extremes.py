"""A solution."""

import torch


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def step(x: torch.Tensor) -> torch.Tensor:
    """The spread of each row, scaled by its extremes."""
    low, high = x.amin(-1), x.amax(-1)
    return (x - low[:, None]) / (high - low)[:, None] + high[:, None]


def make():
    return step


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    return [(rand(seed, 32, 64),)]
