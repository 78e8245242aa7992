"""A solution."""

import torch


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def step(tokens: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """The largest value before the first end mark (0) of each sequence; without one, of the whole."""
    before = (tokens == 0).cumsum(-1) == 0
    most = values.masked_fill(~before, float("-inf")).amax(-1)
    return torch.where(before[:, 0], most, 0.0).exp()


def make():
    return step


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    generator = torch.Generator().manual_seed(seed)
    return [(torch.randint(0, 9, (8, 12), generator=generator), rand(seed + n, 8, 12)) for n in range(3)]
