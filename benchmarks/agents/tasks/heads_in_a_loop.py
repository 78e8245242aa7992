"""Attention with a loop over heads makes many calls."""

import torch

LIMITS = {"kernels": 10, "breaks": 0}


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
        rows = []
        for q, k, v in zip(self.query, self.key, self.value):
            scores = q(x) @ k(x).transpose(-1, -2) / (x.shape[-1] // self.heads) ** 0.5
            rows.append(scores.softmax(-1) @ v(x))
        return self.out(torch.cat(rows, -1))


def make() -> torch.nn.Module:
    return Attention().requires_grad_(False)


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    return [(rand(seed, 2, 16, 64),)]
