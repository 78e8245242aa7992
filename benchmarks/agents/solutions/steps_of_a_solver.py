"""A solution."""

import torch
from torch.utils.checkpoint import checkpoint


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def step(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Sixteen steps of a recurrence."""

    def four(h: torch.Tensor) -> torch.Tensor:
        for _ in range(4):
            h = torch.tanh(h @ w) + torch.sin(h) * 0.1 + x
        return h

    h = x
    for _ in range(4):
        h = checkpoint(four, h, use_reentrant=False)
    return h


def make():
    return step


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    return [(rand(seed, 16, 16).requires_grad_(), (rand(seed + 1, 16, 16) / 4).requires_grad_())]
