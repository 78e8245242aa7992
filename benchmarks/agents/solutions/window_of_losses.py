"""A solution."""

import torch
import torch.nn.functional as F


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Monitor(torch.nn.Module):
    """A loss that is scaled by the mean of the last five."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("past", torch.zeros(5))
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        loss = F.smooth_l1_loss(x, y)
        self.past.copy_(torch.cat([self.past[1:], loss.detach()[None]]))
        self.count.add_(1)
        return loss / (self.past.sum() / self.count.clamp(max=5))


def make() -> torch.nn.Module:
    return Monitor()


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    return [(rand(seed + n, 32), rand(seed + 70 + n, 32)) for n in range(9)]
