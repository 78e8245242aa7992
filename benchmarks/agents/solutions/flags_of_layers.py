"""A solution."""

import torch


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Dropped(torch.nn.Module):
    """Layers of which one is left out, another at each call."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(12, 12) for _ in range(5))
        self.register_buffer("turn", torch.zeros((), dtype=torch.int64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for number, layer in enumerate(self.layers):
            x = torch.where(self.turn % 5 != number, x + layer(x).relu(), x)
        self.turn += 1
        return x


def make() -> torch.nn.Module:
    return Dropped()


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    return [(rand(seed + n, 4, 12),) for n in range(7)]
