"""In evaluation the compiled model differs."""

import torch

LIMITS = {"wrong": 0, "breaks": 0}


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Head(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(16, 16)
        self.drop = torch.nn.Dropout(0.3)
        self.scale = torch.nn.Parameter(torch.full((16,), 1.5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.first(x).relu()
        y = self.drop(h)
        gate = torch.sigmoid(h.mean(-1, keepdim=True))
        y *= self.scale
        y += 0.25
        return y * gate + h.amax(-1, keepdim=True)


def make() -> torch.nn.Module:
    return Head().eval().requires_grad_(False)


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    return [(rand(seed, 4, 16),)]
