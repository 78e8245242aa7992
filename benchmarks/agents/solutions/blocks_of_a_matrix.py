"""A solution."""

import torch


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def step(x: torch.Tensor, blocks: list[torch.Tensor]) -> torch.Tensor:
    """A block diagonal product, then a norm."""
    parts = x.view(x.shape[0], len(blocks), -1).transpose(0, 1)
    y = torch.bmm(parts, torch.stack(blocks)).transpose(0, 1).reshape(x.shape)
    return y / y.pow(2).mean(-1, keepdim=True).sqrt()


def make():
    return step


def calls(seed: int) -> list[tuple[object, ...]]:
    return [(rand(seed, 32, 64), [rand(seed + n, 8, 8) for n in range(8)])]
