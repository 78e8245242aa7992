"""A running sum over what could be counted costs a kernel of its own."""

import torch

LIMITS = {"kernels": 3, "breaks": 0}


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def step(x: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
    """Rows scaled by their place, and by how often the row was kept."""
    place = torch.ones(x.shape[0]).cumsum(0)
    before = keep.flip(0).cumsum(0).flip(0)
    total = keep.cumsum(0)[-1]
    return x / place[:, None] + before[:, None] / total


def make():
    return step


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    return [(rand(seed, 64, 8), (rand(seed + 1, 64) > 0).float())]
