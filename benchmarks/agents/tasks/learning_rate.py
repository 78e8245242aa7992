"""A training step of one's own compiles again whenever the rate falls."""

import torch

LIMITS = {"graphs": 1, "breaks": 0}


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Descent:
    def __init__(self) -> None:
        self.rate = 0.1
        self.velocity = torch.zeros(16)

    def __call__(self, weight: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
        self.velocity = self.velocity * 0.9 + gradient
        weight = weight - self.rate * self.velocity
        self.rate *= 0.8
        return weight


def make() -> Descent:
    return Descent()


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    return [(rand(seed + n, 16), rand(seed + 50 + n, 16)) for n in range(10)]
