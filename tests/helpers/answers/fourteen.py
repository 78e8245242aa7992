"""Answers to the exercises of lesson 14."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from compile_lens.course.lessons.fourteen import fitted, scaled

from .common import Made, Mistake


def claimed(x: torch.Tensor) -> torch.Tensor:
    """Says in words what it does not do: fullgraph=True, one CUDA graph, x.min().clamp(max=0)."""
    return x * 1


def up_and_down(x: torch.Tensor) -> torch.Tensor:
    x = x - torch.minimum(x.min(), torch.zeros(()))
    return x / x.max().clamp(min=1)


def fetched(x: torch.Tensor) -> torch.Tensor:
    return torch.exp(x / x.abs().max().item()) @ x


def raising(*args: Any) -> torch.Tensor:
    raise RuntimeError("no such thing")


def drawn(x: torch.Tensor) -> torch.Tensor:
    return F.dropout(x[0] + 0 * x[1], 0.5)


RIGHT: dict[str, list[Made]] = {
    "14.1": [
        up_and_down,
        lambda x: up_and_down(torch.where(x.min() < 0, x - x.min(), x)),
        lambda x: (x + F.relu(-x.min())) / (1 + F.relu((x + F.relu(-x.min())).max() - 1)),
    ],
    "14.2": [
        lambda x: torch.where(x[1] < 0.5, 0, 2 * x[0]),
        lambda x: 2 * x[0] * (x[1] >= 0.5),
        lambda x: x[0].masked_fill(x[1] < 0.5, 0) * 2,
        lambda x: x[0] * (x[1] >= 0.5).float() / 0.5,
    ],
    "14.3": [
        lambda x: torch.exp(x / x.abs().max()) @ x,
        lambda x: torch.exp(x / torch.maximum(x.max(), -x.min())) @ x,
        lambda x: torch.matmul((x * (1 / x.abs().amax())).exp(), x),
    ],
}

MISLED: dict[str, list[Mistake]] = {
    "14.1": [
        (fitted, "graph break", "Python still needs a value"),
        (lambda x: up_and_down(x) if x.min() < 0 else x, "graph break", ""),
        (lambda x: up_and_down(x - x.min()), "for numbers above 0 its result has other values", ""),
        (lambda x: up_and_down(x) / up_and_down(x).max(), "its result has other values", ""),
        (lambda x: x - x.min().clamp(max=0), "for numbers above and below 0 its result has other values", ""),
        (lambda x: x.clamp(0, 1), "for numbers below 0 its result has other values", ""),
        (lambda x: torch.sqrt(x - 1), "contains nan", ""),
        (lambda x: x.min().clamp(max=0), "its result has the shape (), and not (1000,)", ""),
        (claimed, "its result has other values", ""),
        (raising, "RuntimeError: no such thing", ""),
    ],
    "14.2": [
        (drawn, "its result has other values", "Random numbers that the function draws itself"),
        (lambda x: torch.where(x[1] < 0.5, 0, x[0]), "its result has other values", ""),
        (lambda x: torch.where(x[1] > 0.5, 0, 2 * x[0]), "its result has other values", ""),
        (lambda x: torch.where(x[1] < 0.5, 0, 2 * x[0].detach()), "its gradient has other values", ""),
        (lambda x: torch.where(x[1] < 0.5, 0, 2 * x[0]) if x.sum() else x[0], "graph break", ""),
        (lambda x: torch.where(x < 0.5, 0, 2 * x), "its result has the shape (2, 1000), and not (1000,)", ""),
        (lambda x: 2 * x[0], "its result has other values", ""),
        (lambda x, noise: 2 * x, "it does not take as many inputs as the exercise has", ""),
        (raising, "RuntimeError: no such thing", ""),
    ],
    "14.3": [
        (scaled, "1 part that no CUDA graph can record; required: exactly 0", "still runs on the CPU"),
        (fetched, "graph break", "each graph is recorded by itself"),
        (lambda x: torch.exp(x / float(x.abs().max())) @ x, "graph break", ""),
        (lambda x: torch.exp(x.cpu() / x.cpu().abs().max()) @ x.cpu(), "no CUDA graph can record", ""),
        (lambda x: torch.exp(x / x.max()) @ x, "its result has other values", ""),
        (lambda x: torch.exp(x / x.abs().max()), "its result has other values", ""),
        (claimed, "its result has other values", ""),
        (raising, "RuntimeError: no such thing", ""),
    ],
}
