"""Two products of matrices, of which one could be cheaper."""

import torch

LIMITS = {"kernels": 3, "breaks": 0}


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def step(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    """Row sums of a product, of its transpose and of another."""
    first = (a @ b).sum(-1)
    second = (b.T @ a.T).sum(0)
    third = (a @ b @ c).mean(-1)
    return (first + second).sigmoid() * third


def make():
    return step


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    return [(rand(seed, 48, 32) / 8, rand(seed + 1, 32, 40) / 8, rand(seed + 2, 40, 24) / 8)]
