"""A solution."""

import torch


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(24, 24) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            y = layer(x)
            y = torch.nan_to_num(y, nan=0.0, posinf=1.0, neginf=-1.0)
            x = x + y.sigmoid()
        return x


def make() -> torch.nn.Module:
    return Block()


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    clean, dirty = rand(seed, 8, 24), rand(seed + 1, 8, 24)
    dirty[2, 3] = float("inf")
    return [(clean,), (dirty,)]
