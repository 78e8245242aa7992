"""Answers to the exercises of lesson 11."""

from __future__ import annotations

import torch

from compile_lens.course.lessons.eleven import followed, score

from .common import Made, Mistake, halved


def _chained(x: torch.Tensor) -> torch.Tensor:
    for _ in range(12):
        x = torch.sin(x)
    return x


def _repeated(x: torch.Tensor) -> torch.Tensor:
    for _ in range(10):
        y = torch.sin(x)
    return y


def _thrown_away(x: torch.Tensor) -> torch.Tensor:
    for turn in range(10):
        y = torch.sin(x + turn)
    return y


def _with_a_tail(x: torch.Tensor) -> torch.Tensor:
    x = x[:1001]
    for _ in range(5):
        x = torch.sin(x)
    return x


def _tensor(x: torch.Tensor) -> torch.Tensor:
    total = torch.zeros(())
    for _ in range(4):
        x = torch.sin(x)
        total = total + x.sum()
    return x * total


def _gathered(x: torch.Tensor) -> torch.Tensor:
    turns = []
    for _ in range(4):
        x = torch.sin(x)
        turns.append(x)
    return x * torch.stack(turns).sum()


def _once(x: torch.Tensor) -> torch.Tensor:
    total = torch.zeros(())
    for _ in range(4):
        x = torch.sin(x)
        total = total + x.sum()
    return x * total.item()


def _as_float(x: torch.Tensor) -> torch.Tensor:
    total = 0.0
    for _ in range(4):
        x = torch.sin(x)
        total += float(x.sum())
    return x * total


def _in_float32(x: torch.Tensor) -> torch.Tensor:
    x = x.to(torch.float32)
    return (torch.tanh(torch.nn.functional.silu(x) / 3) * x).to(torch.bfloat16)


def _in_float64(x: torch.Tensor) -> torch.Tensor:
    return score(x.double()).to(x.dtype)


RIGHT: dict[str, list[Made]] = {
    "11.1": [_chained, lambda x: sum(torch.sin(x + turn) for turn in range(10))],
    "11.2": [_tensor, _gathered],
    "11.3": [lambda x: x @ x, lambda x: x.prod(0), lambda x: x @ x.T],
    "11.4": [_in_float32, _in_float64],
}

MISLED: dict[str, list[Mistake]] = {
    "11.1": [
        (_repeated, "1 sine in the kernels; required: at least 10", "You wrote many, and one is computed"),
        (_thrown_away, "1 sine in the kernels; required", "You wrote many, and one is computed"),
        (
            lambda x: sum(torch.sin(x) for _ in range(10)),
            "1 sine in the kernels; required",
            "You wrote many",
        ),
        (lambda x: torch.sin(torch.sin(x)), "2 sines in the kernels; required", "There are fewer."),
        (_with_a_tail, "5 sines in the kernels; required", "There are fewer."),
        (lambda x: torch.cos(x), "0 sines in the kernels; required", "There are fewer."),
    ],
    "11.2": [
        (followed, "None of it was compiled", "the loop runs eagerly"),
        (_as_float, "None of it was compiled", "Python still needs a number"),
        (_once, "1 graph break; required", "only once now"),
        (lambda x: torch.sin(x), "its result has other values", ""),
    ],
    "11.3": [
        (lambda x: torch.sin(x), "1 launch in the backward; required: at least 2", "one kernel too"),
        (lambda x: torch.relu(x @ x), "2 launches in the forward; required", "Remove it"),
        (lambda x: x.detach() @ x.detach(), "0 launches in the backward; required", "computes nothing"),
        (lambda x: x.sum(), "0 launches in the backward; required", "it only repeats the gradient"),
        (halved, "1 graph break; required", ""),
    ],
    "11.4": [
        (score, "5 ATen operators with a bfloat16 result; required", "An operator in between still has"),
        (
            lambda x: score(torch.sigmoid(x).float()).bfloat16(),
            "2 ATen operators with a bfloat16 result; required",
            "An operator in between still has",
        ),
        (lambda x: score(x.float()), "0 ATen operators with a bfloat16 result", "not even the result"),
        (lambda x: torch.tanh(x), "its result has other values", ""),
    ],
}
