"""A solution."""

import torch


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def step(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Jacobi's method, at most 30 steps; the result and the number of steps."""
    diagonal = a.diagonal()
    rest = a - torch.diag(diagonal)
    x = torch.zeros_like(b)
    count = torch.tensor(0)
    active = torch.tensor(True)
    for _ in range(30):
        new = (b - rest @ x) / diagonal
        moved = (new - x).abs().max()
        x = torch.where(active, new, x)
        count = count + active
        active = active & (moved >= 1e-3)
    return x, count


def make():
    return step


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    return [(rand(seed + n, 16, 16) + 40 * torch.eye(16), rand(seed + 9 + n, 16) * 10**n) for n in range(4)]
