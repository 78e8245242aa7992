"""Each expert sees its own rows, and the program falls into pieces."""

import torch
import torch.nn.functional as F

LIMITS = {"breaks": 0, "graphs": 1}


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Experts(torch.nn.Module):
    def __init__(self, width: int = 32, count: int = 4) -> None:
        super().__init__()
        self.gate = torch.nn.Linear(width, count)
        self.experts = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(count))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights, chosen = self.gate(x).softmax(-1).topk(2, dim=-1)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            rows, slot = (chosen == number).nonzero(as_tuple=True)
            if rows.numel() == 0:
                continue
            out[rows] += weights[rows, slot, None] * F.gelu(expert(x[rows]))
        return out


def make() -> torch.nn.Module:
    return Experts()


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    return [(rand(seed + n, 48, 32),) for n in range(3)]
