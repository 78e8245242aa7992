"""Answers to the exercises of lesson 4."""

from __future__ import annotations

import torch
from torch.utils.checkpoint import checkpoint

from compile_lens.course.lessons.four import product

from .common import Made, Mistake, halved


def in_halves(x: torch.Tensor) -> torch.Tensor:
    """Rounds differently from the product in one piece."""
    return torch.sin(x[:, :32] @ x[:32] + x[:, 32:] @ x[32:])


RIGHT: dict[str, list[Made]] = {
    "4.1": [
        lambda x: x.sin().cos().exp().tanh(),
        lambda x: torch.sin(torch.exp(torch.cos(x) * x)).sum(),
    ],
    "4.2": [product, lambda x: torch.cumsum(x.sin(), 0).cos(), lambda x: torch.sort(x)[0].sin()],
    "4.3": [
        lambda x: checkpoint(product, x, use_reentrant=False),
        lambda x: checkpoint(in_halves, x, use_reentrant=False),
        lambda x: torch.sin(checkpoint(torch.mm, x, x, use_reentrant=False)),
    ],
}

MISLED: dict[str, list[Mistake]] = {
    "4.1": [
        (lambda x: x * 3 + 1, "0 operators computed in both halves; required", "or nothing at all"),
        (lambda x: torch.exp(x), "0 operators computed in both halves; required", "an input, a result"),
        (
            lambda x: torch.cos(x @ x),
            "bytes saved besides inputs and results; required",
            "its result is kept",
        ),
        (lambda x: x.detach().sin(), "0 operators computed in both halves; required", "There is no backward"),
    ],
    "4.2": [
        (
            lambda x: x.sin().cos().exp(),
            "0 bytes saved besides inputs and results; required",
            "in memory anyway",
        ),
        (lambda x: x * 3, "0 bytes saved besides inputs and results; required", "saves nothing at all"),
        (lambda x: x.detach() @ x.detach(), "0 bytes saved beside", "There is no backward"),
    ],
    "4.3": [
        (product, "16,384 bytes saved besides inputs and results; required", "The product is still kept"),
        (lambda x: torch.sin(x), "its result has other values", ""),
        (lambda x: product(x.detach()), "0 ATen operators in the backward", "There is no backward"),
        (halved, "1 graph break; required", ""),
    ],
}
