"""Three layers read the same input."""

import torch
import torch.nn.functional as F

LIMITS = {"kernels": 3, "breaks": 0}


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Gate(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate = torch.nn.Linear(32, 64)
        self.up = torch.nn.Linear(32, 64)
        self.mix = torch.nn.Linear(32, 64, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.silu(self.gate(x)) * self.up(x) + self.mix(x).tanh()


def make() -> torch.nn.Module:
    return Gate().requires_grad_(False)


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    return [(rand(seed, 8, 32),)]
