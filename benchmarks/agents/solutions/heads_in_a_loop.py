"""A solution."""

import torch
import torch.nn.functional as F


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Attention(torch.nn.Module):
    def __init__(self, width: int = 64, heads: int = 8) -> None:
        super().__init__()
        self.heads = heads
        self.query = torch.nn.ModuleList(torch.nn.Linear(width, width // heads) for _ in range(heads))
        self.key = torch.nn.ModuleList(torch.nn.Linear(width, width // heads) for _ in range(heads))
        self.value = torch.nn.ModuleList(torch.nn.Linear(width, width // heads) for _ in range(heads))
        self.out = torch.nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight = torch.cat([layer.weight for part in (self.query, self.key, self.value) for layer in part])
        bias = torch.cat([layer.bias for part in (self.query, self.key, self.value) for layer in part])
        q, k, v = F.linear(x, weight, bias).view(*x.shape[:2], 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = (q @ k.transpose(-1, -2) / (x.shape[-1] // self.heads) ** 0.5).softmax(-1) @ v
        return self.out(mixed.transpose(1, 2).reshape(x.shape))


def make() -> torch.nn.Module:
    return Attention().requires_grad_(False)


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    return [(rand(seed, 2, 16, 64),)]
