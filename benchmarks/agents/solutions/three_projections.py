"""A solution."""

import torch
import torch.nn.functional as F


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Gate(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate = torch.nn.Linear(32, 64)
        self.up = torch.nn.Linear(32, 64)
        self.mix = torch.nn.Linear(32, 64, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight = torch.cat([self.gate.weight, self.up.weight, self.mix.weight])
        gate, up, mix = F.linear(x, weight).chunk(3, -1)
        return F.silu(gate + self.gate.bias) * (up + self.up.bias) + mix.tanh()


def make() -> torch.nn.Module:
    return Gate().requires_grad_(False)


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    return [(rand(seed, 8, 32),)]
