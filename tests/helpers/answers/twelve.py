"""Answers to the exercises of lesson 12."""

from __future__ import annotations

import torch

from compile_lens.course.lessons.twelve import multiplied, one_by_one

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


RIGHT: dict[str, list[Made]] = {
    "12.1": [lambda x: x.det(), torch.func.vmap(torch.linalg.det), _formula],
    "12.2": [_stacked, _joined],
    "12.3": [lambda x: x @ x, lambda x: torch.relu(x @ x.T), _long],
}

MISLED: dict[str, list[Mistake]] = {
    "12.1": [
        (one_by_one, "21 launches; required: exactly 1", "The library is called for each matrix"),
        (
            lambda x: torch.linalg.det(x) * 1.5 / 1.5,
            "2 launches; required",
            "work of the compiler's own beside it",
        ),
        (lambda x: x.sum((1, 2)), "its result has other values", ""),
        (halved, "1 graph break; required", ""),
    ],
    "12.2": [
        (multiplied, "3 library calls; required: exactly 0", "generates no code of its own"),
        (_half_way, "1 library call; required", "a complex tensor is still made"),
        (_added, "4 library calls; required", "a complex tensor is still made"),
        (_einsum, "library call", "No complex tensor is made"),
        (_by_parts, "its result has other values", ""),
    ],
    "12.3": [
        (
            lambda x: x.sin().exp().tanh(),
            "0 compute-bound kernels; required",
            "even if that is many operators",
        ),
        (lambda x: torch.sort(x)[0], "0 compute-bound kernels; required", "not modelled"),
        (torch.linalg.det, "0 compute-bound kernels; required", "not modelled"),
        (torch.linalg.inv, "0 compute-bound kernels; required", "not modelled"),
        (lambda x: x.half() @ x.half(), "0 compute-bound kernels; required", "many times faster"),
        (lambda x: x @ x[:, :2], "0 compute-bound kernels; required", "too few operations for each byte"),
    ],
}
