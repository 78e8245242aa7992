"""Functions to capture for absent devices; each maker creates new inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn


def rand(*shape: int, dtype: torch.dtype = torch.float32, grad: bool = True) -> torch.Tensor:
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(0)).requires_grad_(grad)


def whole(high: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, high, shape, generator=torch.Generator().manual_seed(0))


def wave(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) ** 2 + torch.cos(x) ** 2


def fourth_power(x: torch.Tensor) -> torch.Tensor:
    return torch.square(torch.square(x))


def softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, (x.shape[-1],), weight, bias)


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def attention_by_hand(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.softmax(q @ k.transpose(-1, -2) / 8.0, -1) @ v


def dropout(x: torch.Tensor) -> torch.Tensor:
    return F.dropout(x, 0.3, True) * 2


def total(x: torch.Tensor) -> torch.Tensor:
    return x.sum()


def mean_square(x: torch.Tensor) -> torch.Tensor:
    return (x * x).mean()


def embedding(index: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return F.embedding(index, weight).relu()


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a @ b


def cross_entropy(x: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(x, label)


def running_sum(x: torch.Tensor) -> torch.Tensor:
    return x.cumsum(0)


def largest(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x.argmax(-1), x.max(-1).values


def every_second(x: torch.Tensor) -> torch.Tensor:
    return torch.where(torch.arange(x.shape[0], device=x.device) % 2 == 0, x, -x)


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64))


def convolution() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU())


def heads(dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    return tuple(rand(2, 4, 128, 64, dtype=dtype) for _ in range(3))


SUITE: dict[str, Callable[[], tuple[Any, tuple[Any, ...]]]] = {
    "wave": lambda: (wave, (rand(1000),)),
    "fourth power": lambda: (fourth_power, (rand(1000),)),
    "softmax": lambda: (softmax, (rand(128, 1000),)),
    "wide softmax": lambda: (softmax, (rand(64, 50_000),)),
    "layer norm": lambda: (layer_norm, (rand(128, 768), rand(768), rand(768))),
    "mlp": lambda: (mlp(), (rand(32, 64),)),
    "attention": lambda: (attention, heads(torch.float32)),
    "attention, 16 bits": lambda: (attention, heads(torch.float16)),
    "attention by hand": lambda: (attention_by_hand, heads(torch.float32)),
    "attention by hand, 16 bits": lambda: (attention_by_hand, heads(torch.float16)),
    "dropout": lambda: (dropout, (rand(1000),)),
    "sum": lambda: (total, (rand(1_000_000),)),
    "mean square": lambda: (mean_square, (rand(1_000_000),)),
    "embedding": lambda: (embedding, (whole(100, 32), rand(100, 16))),
    "convolution": lambda: (convolution(), (rand(2, 3, 32, 32),)),
    "matrix by vector": lambda: (product, (rand(512, 512), rand(512))),
    "outer product": lambda: (product, (rand(512, 1), rand(1, 512))),
    "cross entropy": lambda: (cross_entropy, (rand(64, 1000), whole(1000, 64))),
    "running sum": lambda: (running_sum, (rand(1000),)),
    "largest": lambda: (largest, (rand(64, 128),)),
    "every second": lambda: (every_second, (rand(1000),)),
}
"""Makers of a function and its arguments, by name."""
