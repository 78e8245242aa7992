"""A matrix made of blocks is multiplied block by block."""

import torch

LIMITS = {"kernels": 3, "breaks": 0}


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def step(x: torch.Tensor, blocks: list[torch.Tensor]) -> torch.Tensor:
    """A block diagonal product, then a norm."""
    parts = [part @ block for part, block in zip(x.chunk(len(blocks), -1), blocks)]
    y = torch.cat(parts, -1)
    return y / y.pow(2).mean(-1, keepdim=True).sqrt()


def make():
    return step


def calls(seed: int) -> list[tuple[object, ...]]:
    return [(rand(seed, 32, 64), [rand(seed + n, 8, 8) for n in range(8)])]
