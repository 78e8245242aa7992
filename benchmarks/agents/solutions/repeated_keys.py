"""A solution."""

import torch
import torch.nn.functional as F


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def step(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Attention with two heads of keys for eight of queries."""
    batch, _heads, _length, width = q.shape
    grouped = q.reshape(batch, k.shape[1], -1, width)
    return F.scaled_dot_product_attention(grouped, k, v).reshape(q.shape)


def make():
    return step


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    q = rand(seed, 2, 8, 64, 16).requires_grad_()
    return [(q, rand(seed + 1, 2, 2, 64, 16).requires_grad_(), rand(seed + 2, 2, 2, 64, 16).requires_grad_())]
