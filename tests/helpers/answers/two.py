"""Answers to the exercises of lesson 2."""

from __future__ import annotations

import torch

from compile_lens.course.lessons.two import scaled, shifted

from .common import Made, Mistake, halved, spoken

RIGHT: dict[str, list[Made]] = {
    "2.1": [lambda x: spoken(x.sin()), lambda x: spoken(x).cos() + 1],
    "2.2": [lambda x: torch.where(x.sum() > 0, x + 1, x - 1), lambda x: x - 1 + 2 * (x.sum() > 0)],
    "2.3": [lambda x: x * x.abs().max() + 1, lambda x: torch.addcmul(torch.ones_like(x), x, x.abs().amax())],
}

MISLED: dict[str, list[Mistake]] = {
    "2.1": [
        (lambda x: x.sin(), "0 graph breaks; required", "nothing had to run eagerly"),
        (halved, "2 graphs; required", "tensor operations both before the break and after it"),
    ],
    "2.2": [
        (shifted, "1 graph break; required", "Python still needs a value"),
        (lambda x: x + 1, "for numbers below 0 its result has other values", ""),
        (lambda x: torch.where(x > 0, x + 1, x - 1), "for numbers above and below 0", ""),
        (lambda x: x + torch.sign(x), "for numbers above and below 0", ""),
        (lambda x: torch.where(x[0] > 0, x + 1, x - 1), "for numbers above and below 0", ""),
        (lambda x: torch.cat((x, x)), "its result has the shape (16,), and not (8,)", ""),
        (lambda x: (x + 1, x - 1), "it returns a tuple, not a tensor", ""),
    ],
    "2.3": [
        (scaled, "1 graph break; required", "Python still needs a value"),
        (lambda x: x * torch.where(x.sum() > 0, x.max(), -x.min()) + 1, "above and below 0", ""),
        (lambda x: x * x.max() + 1, "for numbers below 0 its result has other values", ""),
    ],
}
