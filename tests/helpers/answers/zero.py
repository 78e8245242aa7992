"""Answers to the exercises of lesson 0."""

from __future__ import annotations

import torch

from compile_lens.course.lessons.zero import determinant

from .common import Made, Mistake, halved


def by_triangles(x: torch.Tensor) -> torch.Tensor:
    factors, pivots = torch.linalg.lu_factor(x)
    swaps = (pivots != torch.arange(1, 5)).sum()
    return factors.diagonal().prod() * (1 - 2 * (swaps % 2))


def without_the_swaps(x: torch.Tensor) -> torch.Tensor:
    return torch.linalg.lu_factor(x)[0].diagonal().prod()


def logarithmic(x: torch.Tensor) -> torch.Tensor:
    sign, logarithm = torch.linalg.slogdet(x)
    return logarithm.exp() * sign


def one_by_one(x: torch.Tensor) -> torch.Tensor:
    return torch.stack([m[0, 0] * m[1, 1] - m[0, 1] * m[1, 0] for m in x])


def unbound(x: torch.Tensor) -> torch.Tensor:
    (a, b), (c, d) = (row.unbind(1) for row in x.unbind(1))
    return a * d - b * c


RIGHT: dict[str, list[Made]] = {
    "0.1": [lambda x: torch.linalg.det(x), lambda x: x @ x @ x, lambda x: torch.linalg.svdvals(x)],
    "0.2": [by_triangles, logarithmic],
    "0.3": [unbound, one_by_one, lambda x: x[:, 0, 0] * x[:, 1, 1] - x[:, 1, 0] * x[:, 0, 1]],
}

MISLED: dict[str, list[Mistake]] = {
    "0.1": [
        (lambda x: torch.sin(x), "0 library calls; required: at least 1", "knows formulas"),
        (
            lambda x: torch.relu(x @ x),
            "1 kernel of the compiler's own; required",
            "also generated code of its own",
        ),
        (halved, "1 graph break; required", ""),
    ],
    "0.2": [
        (determinant, "0 kernels of the compiler's own; required", "Do part of the work yourself"),
        (
            lambda x: torch.linalg.det(x) * 1.0,
            "1 call of the library's det; required: exactly 0",
            "The library's det is still called",
        ),
        (lambda x: x.det() + 0, "1 call of the library's det; required", "The library's det is still called"),
        (without_the_swaps, "above and below 0 its result has other values", ""),
        (lambda x: x.diagonal().prod(), "its result has other values", ""),
        (lambda x: torch.logdet(x).exp(), "its result contains nan", ""),
    ],
    "0.3": [
        (determinant, "1 library call; required: exactly 0", "you know the formula"),
        (lambda x: x[0, 0, 0] * x[0, 1, 1], "its result has the shape (), and not (100,)", ""),
        (lambda x: x[:, 0, 0] * x[:, 1, 1] + x[:, 0, 1] * x[:, 1, 0], "its result has other values", ""),
    ],
}
