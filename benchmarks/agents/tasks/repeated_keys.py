"""Keys repeated for each group of heads are kept."""

import torch

LIMITS = {"saved": 70000, "breaks": 0}


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def step(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Attention with two heads of keys for eight of queries."""
    k = k.repeat_interleave(4, dim=1)
    v = v.repeat_interleave(4, dim=1)
    scores = (q @ k.transpose(-1, -2)) / q.shape[-1] ** 0.5
    return scores.softmax(-1) @ v


def make():
    return step


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    q = rand(seed, 2, 8, 64, 16).requires_grad_()
    return [(q, rand(seed + 1, 2, 2, 64, 16).requires_grad_(), rand(seed + 2, 2, 2, 64, 16).requires_grad_())]
