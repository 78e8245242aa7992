"""A solution."""

import torch


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def step(x: torch.Tensor, anchors: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """The softened least distance of each row to the anchors, each with a metric of its own."""
    moved = torch.bmm(x - anchors[:, None], scales)
    return -torch.logsumexp(-moved.square().sum(-1), 0)


def make():
    return step


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    return [(rand(seed, 40, 12), rand(seed + 1, 6, 12), rand(seed + 2, 6, 12, 12) / 6)]
