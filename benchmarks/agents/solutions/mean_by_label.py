"""A solution."""

import torch
import torch.nn.functional as F


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


LABELS = 6


def step(x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Take from each row the mean of the rows with its label; rows whose label is rare stay."""
    own = F.one_hot(labels, LABELS).to(x.dtype)
    count = own.sum(0)
    means = (own.T @ x) / count.clamp(min=1)[:, None]
    return F.relu(torch.where((count >= 3)[labels, None], x - means[labels], x))


def make():
    return step


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    generator = torch.Generator().manual_seed(seed)
    return [(rand(seed + n, 20, 8), torch.randint(0, LABELS, (20,), generator=generator)) for n in range(4)]
