"""Answers to the exercises of lesson 10."""

from __future__ import annotations

import torch

from compile_lens.course.lessons.ten import chained, summed, two_passes

from .common import Made, Mistake, halved


def _in_double(x: torch.Tensor) -> torch.Tensor:
    y = x.double()
    return (y @ (y.T @ y)).float()


RIGHT: dict[str, list[Made]] = {
    "10.1": [lambda x: x @ (x.T @ x), lambda x: torch.mm(x, torch.mm(x.t(), x))],
    "10.2": [lambda x: (x * x).mean() - x.mean() ** 2, lambda x: torch.var(x, correction=0)],
    "10.3": [lambda x: (x.sum(0) ** 2).sum(), lambda x: x.sum(0) @ x.sum(0)],
}

MISLED: dict[str, list[Mistake]] = {
    "10.1": [
        (chained, "35,840 bytes after fusion; required: at most 8,000", "In which order would it be small"),
        (lambda x: x * 2, "its result has other values", ""),
        (_in_double, "12,544 bytes after fusion; required: at most 8,000.", ""),
        (lambda x: x @ (x.T @ x).sum(), "could not be captured: RuntimeError: ", "matmul"),
        (halved, "1 graph break; required", ""),
    ],
    "10.2": [
        (two_passes, "32,788 bytes after fusion; required: at most 17,000", "x is read more than once"),
        (lambda x: x.var(), "its result has other values", ""),
        (lambda x: torch.cov(x, correction=0), "1 graph break; required", ""),
    ],
    "10.3": [
        (summed, "262,144 numbers in an intermediate result; required", "Does every product of two rows"),
        (lambda x: (x**2).sum(), "its result has other values", ""),
    ],
}
