"""A solution."""

import torch


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def step(x: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
    """Rows scaled by their place, and by how often the row was kept."""
    place = torch.arange(1, x.shape[0] + 1)
    total = keep.sum()
    before = total - keep.cumsum(0) + keep
    return x / place[:, None] + before[:, None] / total


def make():
    return step


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    return [(rand(seed, 64, 8), (rand(seed + 1, 64) > 0).float())]
