"""A solution."""

import torch


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def step(x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """The cross entropy with smoothed labels, by hand."""
    own = torch.arange(x.shape[1]) == labels[:, None]
    target = torch.where(own, 0.9, 0.1 / (x.shape[1] - 1))
    logp = x - x.exp().sum(1, keepdim=True).log()
    return -(target * logp).sum(1) + torch.where(own, x, 0.0).sum(1)


def make():
    return step


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    generator = torch.Generator().manual_seed(seed)
    return [(rand(seed, 16, 10), torch.randint(0, 10, (16,), generator=generator))]
