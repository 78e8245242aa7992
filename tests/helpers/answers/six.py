"""Answers to the exercises of lesson 6."""

from __future__ import annotations

import torch

from .common import Made, Mistake, loops

RIGHT: dict[str, list[Made]] = {
    "6.1": [loops, lambda x: torch.relu(x * 2 + x.cos() - 1)],
    "6.2": [lambda x: (x.sin(), x.cos(), x.exp(), x.tanh()), lambda x: [x * n for n in range(2, 7)]],
    "6.3": [lambda x: x / x.sum(), lambda x: torch.softmax(x, 0), lambda x: (x, x.amax() - x)],
}

MISLED: dict[str, list[Mistake]] = {
    "6.1": [
        (
            lambda x: (x.sin() + 1, x.cos() + 1),
            "2 loops before fusion",
            "More than one value got a buffer",
        ),
        (lambda x: torch.relu(x @ x) + 1 - x, "1 library call", "no loop is inlined into it"),
        (lambda x: torch.sin(x), "1 operator of eager PyTorch; required", ""),
    ],
    "6.2": [
        (
            lambda x: x.sin().cos().exp().tanh(),
            "1 loop before fusion; required",
            "nothing left for fusion to join",
        ),
        (lambda x: x @ x, "1 loop before fusion; required", "There is only a library call"),
        (
            lambda x: (x @ x, x.sin(), x.cos(), x.exp()),
            "2 groups after fusion; required",
            "Some loops were not fused",
        ),
    ],
    "6.3": [
        (lambda x: (x.sin(), x.cos()), "1 group after fusion; required", "each needs only the same number"),
        (lambda x: torch.softmax(x, 1), "1 group after fusion; required", "or the same row"),
        (lambda x: x.sin().cos(), "1 group after fusion; required", "All of it became one loop"),
        (lambda x: torch.relu(x @ x), "1 library call; required", "all loops must be Inductor's own"),
    ],
}
