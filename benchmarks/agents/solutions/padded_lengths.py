"""A solution."""

import torch


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def step(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """The mean of each sequence over its own positions, the last of them counted twice."""
    place = torch.arange(x.shape[1])
    weight = (place < lengths[:, None]).to(x.dtype) + (place == lengths[:, None] - 1).to(x.dtype)
    return ((x * weight[..., None]).sum(1) / (lengths[:, None] + 1)).softmax(-1)


def make():
    return step


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    generator = torch.Generator().manual_seed(seed)
    return [(rand(seed + n, 6, 12, 16), torch.randint(1, 13, (6,), generator=generator)) for n in range(4)]
