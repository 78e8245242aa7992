"""Layers that are dropped by a plan compile again for each plan."""

import torch

LIMITS = {"graphs": 1, "breaks": 0}


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Dropped(torch.nn.Module):
    """Layers of which one is left out, another at each call."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(12, 12) for _ in range(5))
        self.turn = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for number, layer in enumerate(self.layers):
            if number != self.turn % 5:
                x = x + layer(x).relu()
        self.turn += 1
        return x


def make() -> torch.nn.Module:
    return Dropped()


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    return [(rand(seed + n, 4, 12),) for n in range(7)]
