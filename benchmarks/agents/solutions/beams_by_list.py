"""A solution."""

import torch


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def step(scores: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Keeps the four best continuations over all beams, each with the state of its beam."""
    _beams, words = scores.shape
    best = scores.log_softmax(-1).flatten().topk(4)
    beam, word = best.indices // words, best.indices % words
    return best.values, (state[beam] * (1 + word / words)[:, None]).tanh()


def make():
    return step


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    return [(rand(seed + n, 4, 50), rand(seed + 30 + n, 4, 8)) for n in range(3)]
