"""A list of past losses makes it compile again and again."""

import torch
import torch.nn.functional as F

LIMITS = {"graphs": 1, "breaks": 0}


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Monitor(torch.nn.Module):
    """A loss that is scaled by the mean of the last five."""

    def __init__(self) -> None:
        super().__init__()
        self.past: list[torch.Tensor] = []

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        loss = F.smooth_l1_loss(x, y)
        self.past.append(loss.detach())
        if len(self.past) > 5:
            self.past.pop(0)
        return loss / torch.stack(self.past).mean()


def make() -> torch.nn.Module:
    return Monitor()


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    return [(rand(seed + n, 32), rand(seed + 70 + n, 32)) for n in range(9)]
