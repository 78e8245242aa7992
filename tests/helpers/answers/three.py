"""Answers to the exercises of lesson 3."""

from __future__ import annotations

import torch

from compile_lens.course.lessons.three import counted

from .common import Made, Mistake, halved


def plain(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) * 2


def stepped(x: torch.Tensor) -> torch.Tensor:
    for _ in range(len(x)):
        x = torch.cos(x)
    return x


def chosen(x: torch.Tensor) -> torch.Tensor:
    return x.sin() if x.numel() > 20 else x.cos()


RIGHT: dict[str, list[Made]] = {
    "3.1": [counted, stepped, lambda x: torch.stack([x * n for n in range(x.numel())]).sum(0)],
    "3.2": [lambda x: x + x.shape[0], lambda x: x + torch.ones_like(x).sum(), lambda x: x.numel() + x * 1],
    "3.3": [chosen, lambda x: x * 2 if x.shape[0] % 32 == 0 else x * 3],
}

MISLED: dict[str, list[Mistake]] = {
    "3.1": [
        (plain, "2 compilations; required: exactly 4", "it uses a symbol for the size"),
        (halved, "graph break", "each part is compiled by itself"),
    ],
    "3.2": [
        (stepped, "4 compilations; required: at most 2", "each size needs a graph of its own"),
        (stepped, "for numbers above 0 its result has other values", ""),
        (lambda x: x + 8, "its result has other values", ""),
        (lambda x: sum([x.item() for x in x]) + x, "graph break", "A graph break splits the function"),
    ],
    "3.3": [
        (plain, "2 compilations; required: exactly 3", "one variant served all the others"),
        (stepped, "4 compilations; required: exactly 3", "none served two of them"),
        (halved, "graph break", "the task is about one graph"),
    ],
}
