"""Answers to the exercises of lesson 9."""

from __future__ import annotations

import torch

from compile_lens.course.lessons.nine import accumulated

from .common import Made, Mistake, halved

RIGHT: dict[str, list[Made]] = {
    "9.1": [lambda x: torch.sort(x + 1)[0] * 2, lambda x: (x.sin() @ x).cos()],
    "9.2": [lambda x: torch.cumsum(x * 6, 0), lambda x: x.cumsum(0) * 6, lambda x: (2 * (3 * x)).cumsum(0)],
    "9.3": [lambda x: (x.sin(), x[:32].cos()), lambda x: (x * 2, x[:, :8] + 1)],
}

MISLED: dict[str, list[Mistake]] = {
    "9.1": [
        (lambda x: x.sin().cos().exp(), "1 launch; required: at least 3", "nothing in it needs a library"),
        (lambda x: (x @ x).cos(), "2 launches; required: at least 3", "no work on both sides of it"),
        (lambda x: x.sin() @ x + x, "2 launches; required: at least 3", "multiplies and adds in one go"),
        (lambda x: x @ x @ x, "2 library calls; required: exactly 1", "exactly one launch"),
        (halved, "1 graph break; required", ""),
    ],
    "9.2": [
        (accumulated, "3 launches; required: at most 2", "work on both sides of the library call"),
        (lambda x: torch.cumsum(x, 0) * 5, "its result has other values", ""),
        (lambda x: x * 6, "its result has other values", ""),
    ],
    "9.3": [
        (
            lambda x: (x.sin(), x.cos()),
            "0 pairs of loops not fused because of their sizes; required",
            "All of it became one group",
        ),
        (
            lambda x: (x.sum(0), x.sum(1)),
            "0 pairs of loops not fused because of their sizes; required",
            "for another reason",
        ),
        (
            lambda x: x / x.sum(),
            "0 pairs of loops not fused because of their sizes; required",
            "for another reason",
        ),
        (
            lambda x: (x @ x, x[:8].sin()),
            "1 library call; required",
            "A library call is another kind of barrier",
        ),
    ],
}
