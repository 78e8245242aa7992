"""Answers to the exercises of lesson 12."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from compile_lens.course.lessons.twelve import multiplied, one_by_one, slow_block

from .common import Made, Mistake, halved


def _formula(a: torch.Tensor) -> torch.Tensor:
    x, y, z = a.unbind(-2)
    return (x * torch.linalg.cross(y, z)).sum(-1)


def _joined(x: torch.Tensor) -> torch.Tensor:
    real, imaginary = x[0] * x[2] - x[1] * x[3], x[0] * x[3] + x[1] * x[2]
    return torch.cat((real[:, None], imaginary[:, None]), 1)


def _stacked(x: torch.Tensor) -> torch.Tensor:
    a, b, c, d = x
    return torch.stack((a * c - b * d, a * d + b * c), -1)


def _half_way(x: torch.Tensor) -> torch.Tensor:
    a, b, c, d = x
    return torch.view_as_real(torch.complex(a * c - b * d, a * d + b * c))


def _added(x: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(torch.complex(x[0], x[1]) + torch.complex(x[2], x[3]))


def _einsum(x: torch.Tensor) -> torch.Tensor:
    return torch.sort(_stacked(x), 0)[0]


def _by_parts(x: torch.Tensor) -> torch.Tensor:
    return torch.stack((x[0] * x[2], x[1] * x[3]), -1)


def _long(x: torch.Tensor) -> torch.Tensor:
    for _ in range(60):
        x = torch.sin(x) * 0.5 + 1
    return x


def _block(attention: Callable[..., Any]) -> Callable[..., Any]:
    """The block of the lesson with an attention of one's own, of heads that are a batch."""

    def block(x: Any, qkv: Any, out: Any, up: Any, down: Any) -> Any:
        qkv = F.layer_norm(x, (64,), eps=1e-6) @ qkv
        q, k, v = (one.unflatten(-1, (4, 16)).transpose(1, 2) for one in qkv.split(64, -1))
        x = x + attention(q, k, v).transpose(1, 2).flatten(2) @ out
        return x + F.gelu(F.layer_norm(x, (64,), eps=1e-6) @ up, approximate="tanh") @ down

    return block


def _operator(q: Any, k: Any, v: Any) -> Any:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def with_a_sum_in_the_product(x: Any, qkv: Any, out: Any, up: Any, down: Any) -> Any:
    qkv = F.layer_norm(x, (64,), eps=1e-6) @ qkv
    q, k, v = (one.unflatten(-1, (4, 16)).transpose(1, 2) for one in qkv.split(64, -1))
    x = (x + _operator(q, k, v).transpose(1, 2).flatten(2) @ out).flatten(0, 1)
    hidden = F.gelu(F.layer_norm(x, (64,), eps=1e-6) @ up, approximate="tanh")
    return torch.addmm(x, hidden, down).view(4, 128, 64)


def _everyone(q: Any, k: Any, v: Any) -> Any:
    return F.scaled_dot_product_attention(q, k, v)


def _written(q: Any, k: Any, v: Any) -> Any:
    later = torch.ones(128, 128, dtype=torch.bool).triu(1)
    return torch.softmax((q @ k.mT / 4).masked_fill(later, -torch.inf), -1) @ v


def _head_by_head(q: Any, k: Any, v: Any) -> Any:
    return torch.stack([_written(q[:, n], k[:, n], v[:, n]) for n in range(4)], 1)


RIGHT: dict[str, list[Made]] = {
    "12.1": [lambda x: x.det(), torch.func.vmap(torch.linalg.det), _formula],
    "12.2": [_stacked, _joined],
    "12.3": [lambda x: x @ x, lambda x: torch.relu(x @ x.T), _long],
    "12.4": [_block(_operator), with_a_sum_in_the_product],
}

MISLED: dict[str, list[Mistake]] = {
    "12.1": [
        (one_by_one, "21 launches; required: exactly 1", "The library is called for each matrix"),
        (
            lambda x: torch.linalg.det(x) * 1.5 / 1.5,
            "2 launches; required",
            "the compiler's own code next to it",
        ),
        (lambda x: x.sum((1, 2)), "its result has other values", ""),
        (halved, "1 graph break; required", ""),
    ],
    "12.2": [
        (multiplied, "3 library calls; required: exactly 0", "generates no code of its own"),
        (_half_way, "1 library call; required", "there is still a complex tensor"),
        (_added, "4 library calls; required", "there is still a complex tensor"),
        (_einsum, "library call", "There is no complex tensor"),
        (_by_parts, "its result has other values", ""),
    ],
    "12.3": [
        (
            lambda x: x.sin().exp().tanh(),
            "0 compute-bound kernels; required",
            "even if it is many operators",
        ),
        (lambda x: torch.sort(x)[0], "0 compute-bound kernels; required", "not modelled"),
        (torch.linalg.det, "0 compute-bound kernels; required", "not modelled"),
        (torch.linalg.inv, "0 compute-bound kernels; required", "not modelled"),
        (lambda x: x.half() @ x.half(), "0 compute-bound kernels; required", "many times faster"),
        (lambda x: x @ x[:, :2], "0 compute-bound kernels; required", "too few operations for each byte"),
    ],
    "12.4": [
        (slow_block, "graph break", "Python still needs a value"),
        (_block(_head_by_head), "launches; required: at most 9", "Each head has two products of its own"),
        (_block(_written), "bytes", "Something large still goes through memory"),
        (_block(_everyone), "its result has other values", ""),
        (lambda x, *_: x + 1, "its result has other values", ""),
        (lambda x, *_: x[0], "its result has the shape", ""),
    ],
}
