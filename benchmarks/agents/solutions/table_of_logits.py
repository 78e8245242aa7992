"""A solution."""

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def loss(x: torch.Tensor, w: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    logits = (x @ w).float()
    logits = 30 * torch.tanh(logits / 30)
    probabilities = logits.softmax(-1)
    chosen = F.one_hot(labels, logits.shape[-1]).float()
    entropy = -(probabilities * (probabilities + 1e-9).log()).sum(-1).mean()
    return -((probabilities + 1e-9).log() * chosen).sum(-1).mean() - 0.01 * entropy


def step(x: torch.Tensor, w: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return checkpoint(loss, x, w, labels, use_reentrant=False)


def make():
    return step


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    generator = torch.Generator().manual_seed(seed)
    return [
        (
            rand(seed, 64, 16).requires_grad_(),
            rand(seed + 1, 16, 1000).requires_grad_(),
            torch.randint(0, 1000, (64,), generator=generator),
        )
    ]
