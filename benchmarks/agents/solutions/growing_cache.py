"""A solution."""

import torch


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


MOST = 16


class Decoder(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = torch.nn.Linear(16, 48)
        self.register_buffer("keys", torch.zeros(3, MOST, 16))
        self.register_buffer("values", torch.zeros(3, MOST, 16))
        self.register_buffer("place", torch.zeros((), dtype=torch.int64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        places = torch.arange(MOST)
        here = (places == self.place)[None, :, None]
        self.keys.copy_(torch.where(here, k[:, None], self.keys))
        self.values.copy_(torch.where(here, v[:, None], self.values))
        scores = self.keys @ q[..., None] / 4
        weights = scores.masked_fill((places > self.place)[None, :, None], float("-inf")).softmax(1)
        self.place.add_(1)
        return (weights * self.values).sum(1)


def make() -> torch.nn.Module:
    return Decoder().eval().requires_grad_(False)


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    return [(rand(seed + n, 3, 16),) for n in range(MOST)]
