"""Answers to the exercises of lesson 7."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from .common import Made, Mistake, halved

RIGHT: dict[str, list[Made]] = {
    "7.1": [lambda x: x.bfloat16().sin(), lambda x: x.half() * 2],
    "7.2": [lambda x: x.flip(0).cos(), lambda x: x[::3] + 1],
    "7.3": [lambda x: x[:992].sin(), lambda x: F.pad(x, (0, 8)) * 2, lambda x: x[40:].cos()],
}

MISLED: dict[str, list[Mistake]] = {
    "7.1": [
        (
            lambda x: torch.sin(x),
            "16 numbers at a time; required: exactly 32",
            "holds 16 numbers of 32 bits",
        ),
        (lambda x: x[::2].bfloat16().sin(), "1 number at a time; required", "are not adjacent in memory"),
        (
            lambda x: x.to(torch.int16) + 1,
            "1 number at a time; required",
            "has no vector registers for their type",
        ),
    ],
    "7.2": [
        (lambda x: torch.lgamma(x), "16 numbers at a time; required: exactly 1", "no obstacle"),
        (lambda x: torch.cumsum(x, 0), "1 library call; required", "not one of Inductor's kernels"),
        (
            lambda x: x[:1] * 2,
            "Its capture has no loop in a C++ kernel, so no step; required: exactly 1",
            "",
        ),
    ],
    "7.3": [
        (lambda x: torch.sin(x), "1 tail; required: exactly 0", "something is left over"),
        (lambda x: x.flip(0), "1 number at a time; required: exactly 16", "the task is about registers"),
        (halved, "1 graph break; required", ""),
    ],
}
