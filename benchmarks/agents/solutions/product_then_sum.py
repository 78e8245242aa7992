"""A solution."""

import torch


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def step(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    """Row sums of a product, of its transpose and of another."""
    sums = (a * b.sum(-1)).sum(-1)
    third = (a * (b * c.mean(-1)).sum(-1)).sum(-1)
    return (2 * sums).sigmoid() * third


def make():
    return step


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    return [(rand(seed, 48, 32) / 8, rand(seed + 1, 32, 40) / 8, rand(seed + 2, 40, 24) / 8)]
