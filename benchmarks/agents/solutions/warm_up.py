"""A solution."""

import torch


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class WarmUp(torch.nn.Module):
    """A layer whose output grows over the first eight calls."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(16, 16)
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.steps += 1
        scale = (self.steps / 8).clamp(max=1.0) ** 2
        return x + scale * self.layer(x).tanh()


def make() -> torch.nn.Module:
    return WarmUp()


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    return [(rand(seed + n, 4, 16),) for n in range(12)]
