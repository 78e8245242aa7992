"""It runs in several graphs."""

import torch

LIMITS = {"breaks": 0, "graphs": 1}


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Clip(torch.nn.Module):
    """Scales a batch down if its largest rows are too long, by how many there are."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        norms = x.norm(dim=1)
        long = (norms > 11.3).sum().item()
        if long > 10:
            x = x / (1 + long / len(x))
        return x.tanh() * norms[:, None]


def make() -> torch.nn.Module:
    return Clip()


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    return [(rand(seed + n, 64, 128) * (0.5 + n / 4),) for n in range(4)]
