"""A solution."""

import torch


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def step(x: torch.Tensor) -> torch.Tensor:
    """Sums of windows of eight, the last one filled up with the mean."""
    length = x.shape[0]
    count = (length + 7) // 8
    place = torch.arange(count * 8)
    inside = x[place.clamp(max=length - 1)]
    full = torch.where((place < length)[:, None], inside, x.mean(0))
    return full.view(count, 8, x.shape[1]).mean(1)


def make():
    return step


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    return [(rand(seed + n, 24 + 5 * n, 4),) for n in range(9)]
