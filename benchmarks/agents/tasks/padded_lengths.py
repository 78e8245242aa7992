"""Lengths of sequences make it break."""

import torch

LIMITS = {"breaks": 0, "graphs": 1}


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def step(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """The mean of each sequence over its own positions, the last of them counted twice."""
    rows = []
    for row, length in zip(x, lengths.tolist()):
        own = row[:length]
        rows.append((own.sum(0) + own[-1]) / (length + 1))
    return torch.stack(rows).softmax(-1)


def make():
    return step


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    generator = torch.Generator().manual_seed(seed)
    return [(rand(seed + n, 6, 12, 16), torch.randint(1, 13, (6,), generator=generator)) for n in range(4)]
