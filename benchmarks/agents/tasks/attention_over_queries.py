"""The compiled results are not eager's."""

import torch
import torch.nn.functional as F

LIMITS = {"wrong": 0, "breaks": 0}


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def step(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
    """Slots compete for inputs: the weights of each input sum to one over the slots."""
    q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
    scores = torch.matmul(q, k.transpose(-2, -1)).div(0.5)
    weights = scores.softmax(dim=-2)
    update = torch.matmul(weights, v)
    return update * gate.sigmoid() + v.mean(-2, keepdim=True)


def make():
    return step


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    return [tuple(rand(seed + n, 2, 4, 16, 16) for n in range(4))]
