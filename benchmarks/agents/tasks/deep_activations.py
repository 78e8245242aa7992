"""The activations of a deep model are kept."""

import torch
import torch.nn.functional as F

LIMITS = {"saved": 70000, "breaks": 0}


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Deep(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = torch.nn.ModuleList(
            torch.nn.Sequential(torch.nn.Linear(32, 128), torch.nn.GELU(), torch.nn.Linear(128, 32))
            for _ in range(6)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = x + block(F.layer_norm(x, (32,)))
        return x


def make() -> torch.nn.Module:
    return Deep()


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    return [(rand(seed, 64, 32).requires_grad_(),)]
