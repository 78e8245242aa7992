"""A solution."""

import torch


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def step(x: torch.Tensor) -> torch.Tensor:
    """A penalty that grows with the position, which is counted in bfloat16."""
    torch.ones((1, x.shape[-1]), dtype=torch.bool)
    place = torch.arange(1, x.shape[-1] + 1)[None].to(torch.bfloat16)
    return (x - place / 3).float() + place.float()


def make():
    return step


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    return [(rand(seed, 3, 600).bfloat16(),)]
