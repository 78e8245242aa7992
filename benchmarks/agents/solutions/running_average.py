"""A solution."""

import torch


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Scaler(torch.nn.Module):
    """Scales by an average of past magnitudes, and skips a batch that is far above it."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(16, 16)
        self.register_buffer("average", torch.ones(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        size = x.abs().mean()
        moved = 0.9 * self.average + 0.1 * size
        self.average.copy_(torch.where(size < 3 * self.average, moved, self.average))
        return self.layer(x / self.average).tanh()


def make() -> torch.nn.Module:
    return Scaler()


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    return [(rand(seed + n, 8, 16) * (1 + 9 * (n == 4)),) for n in range(9)]
