"""Answers to the exercises of lesson 13."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from compile_lens.course.lessons.thirteen import clipped, gelu

from .common import Made, Mistake, loops

RIGHT: dict[str, list[Made]] = {
    "13.1": [
        lambda x: x * (1.5 / x.norm()).clamp(max=1),
        lambda x: torch.where(x.norm() > 1.5, x * (1.5 / x.norm()), x),
        lambda x: x / torch.maximum(x.norm() / 1.5, torch.ones(())),
    ],
    "13.2": [lambda x: F.gelu(x, approximate="tanh"), torch.nn.GELU("tanh")],
    "13.3": [
        loops,
        lambda x: x.sin().cos().exp().log1p().sin().cos().exp().log1p().sin().cos(),
    ],
}

MISLED: dict[str, list[Mistake]] = {
    "13.1": [
        (clipped, "graph break", "Python still needs a value"),
        (lambda x: x * (1.5 / x.norm()), "for numbers above and below 0 its result has other values", ""),
        (lambda x: x, "for numbers above 0 its result has other values", ""),
        (lambda x: x.clamp(-1.5, 1.5), "for numbers above 0 its result has other values", ""),
        (lambda x: 1.5 / x.norm(), "its result has the shape (), and not (8,)", ""),
    ],
    "13.2": [
        (gelu, "operators of eager PyTorch; required: exactly 1", "an operator for each step"),
        (F.gelu, "its result has other values", ""),
        (torch.relu, "its result has other values", ""),
    ],
    "13.3": [
        (torch.sin, "524,288 bytes before fusion; required: at least", "How many such operators"),
        (lambda x: loops(x) @ x, "bytes after fusion; required: at most", "compiled or not"),
        (lambda x: loops(torch.softmax(loops(x), 0)), "bytes after fusion; required: at most", ""),
    ],
}
