"""Answers to the exercises of lesson 8."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from .common import Made, Mistake, halved


def _chosen(x: torch.Tensor) -> torch.Tensor:
    """It compares indices with a size, and none with the number of elements that it goes over."""
    return torch.where(torch.arange(4096, device=x.device) < 1000, x[0], x[1])


RIGHT: dict[str, list[Made]] = {
    "8.1": [lambda x: F.pad(x, (0, 3096)).sin(), lambda x: x[:512, None] * x[None, :512], _chosen],
    "8.2": [lambda x: x.t().contiguous() + 1, lambda x: x * x.T],
    "8.3": [lambda x: x.flatten().amax(), lambda x: torch.softmax(x.flatten(), 0)],
}

MISLED: dict[str, list[Mistake]] = {
    "8.1": [
        (
            lambda x: torch.sin(x),
            "1 comparison with the number of elements; required",
            "may reach past the end",
        ),
        (
            lambda x: x[:992] * 2,
            "1 comparison with the number of elements; required",
            "not a multiple of the largest possible block",
        ),
        (halved, "1 graph break; required", ""),
    ],
    "8.2": [
        (lambda x: x + 1, "0 kernels with blocks of two dimensions; required", "need different orders"),
        (
            lambda x: x.t() + 1,
            "0 kernels with blocks of two dimensions; required",
            "need different orders",
        ),
        (lambda x: x @ x, "1 library call; required", "is not a Triton kernel"),
    ],
    "8.3": [
        (lambda x: x.sum(1), "0 loops in Triton kernels; required", "into one block"),
        (lambda x: x.sin().cos(), "0 loops in Triton kernels; required", "into one block"),
        (lambda x: x @ x, "1 library call; required", "is not a Triton kernel"),
    ],
}
