"""Means by label run eagerly in part."""

import torch
import torch.nn.functional as F

LIMITS = {"breaks": 0, "graphs": 1}


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


LABELS = 6


def step(x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Take from each row the mean of the rows with its label; rows whose label is rare stay."""
    out = x.clone()
    for label in labels.unique().tolist():
        own = labels == label
        if own.sum() >= 3:
            out[own] = x[own] - x[own].mean(0)
    return F.relu(out)


def make():
    return step


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    generator = torch.Generator().manual_seed(seed)
    return [(rand(seed + n, 20, 8), torch.randint(0, LABELS, (20,), generator=generator)) for n in range(4)]
