"""Each other length compiles again."""

import torch

LIMITS = {"graphs": 2, "breaks": 0}


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def step(x: torch.Tensor) -> torch.Tensor:
    """Sums of windows of eight, the last one filled up with the mean."""
    length = x.shape[0]
    if length % 8 != 0:
        x = torch.cat([x, x.mean(0, keepdim=True).expand(8 - length % 8, -1)])
    windows = x.view(-1, 8, x.shape[1])
    if length > 40:
        return windows.sum(1) / 8
    return windows.mean(1)


def make():
    return step


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    return [(rand(seed + n, 24 + 5 * n, 4),) for n in range(9)]
