"""Answers to the exercises of lesson 5."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from .common import Made, Mistake, halved


def bounded(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(torch.tanh(x @ x.transpose(-1, -2) / 8), -1) @ x


RIGHT: dict[str, list[Made]] = {
    "5.1": [lambda x: F.gelu(x), lambda x: torch.softmax(x, 1), lambda x: F.layer_norm(x, (64,))],
    "5.2": [lambda x: x.mean(0), lambda x: torch.var(x, 1)],
    "5.3": [
        lambda x: torch.softmax(x @ x.transpose(-1, -2) / 8, -1) @ x,
        lambda x: torch.matmul(torch.matmul(x, x.mT).mul(0.125).softmax(dim=-1), x),
    ],
}

MISLED: dict[str, list[Mistake]] = {
    "5.1": [
        (lambda x: (x + 1) * 2 - x.sin(), "4 calls of Dynamo; required: exactly 1", "a call of its own"),
        (lambda x: torch.sin(x), "1 ATen operator; required: at least 4", "already in the smaller set"),
        (halved, "1 graph break; required", ""),
    ],
    "5.2": [
        (lambda x: torch.sin(x), "1 loop before fusion; required", "One loop was enough"),
        (lambda x: x.sum(1), "1 loop before fusion; required", "One loop was enough"),
        (lambda x: torch.softmax(x, 1), "5 ATen operators; required: exactly 1", "one loop for each"),
        (lambda x: x @ x, "1 library call; required: exactly 0", "calls a library here"),
    ],
    "5.3": [
        (
            bounded,
            "0 patterns that matched; required",
            "something between them does not match the pattern",
        ),
        (
            lambda x: F.scaled_dot_product_attention(x, x, x),
            "0 patterns that matched; required",
            "that you called yourself has no pieces left",
        ),
        (
            lambda x: F.linear(x, x[0, 0]) + 1,
            "0 patterns that matched; required",
            "one product alone has too few",
        ),
        (lambda x: torch.softmax(x, -1), "0 patterns that matched; required", ""),
    ],
}
