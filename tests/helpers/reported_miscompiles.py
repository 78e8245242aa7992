"""Programs that torch itself compiles wrongly, after public reports; none is the program of a report.

The line that causes the error ends in ``# here``. On a torch that compiles one correctly, ``wrong`` is False.
"""

from __future__ import annotations

import contextlib
from typing import Any

import torch
import torch.nn.functional as F
from miscompiles import Miscompile


def copied_then_changed(dst: torch.Tensor, src: torch.Tensor) -> torch.Tensor:
    dst[0:, :] = src[0:, :]  # here
    src.add_(1)
    return src


def scattered(x: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    u = torch.slice_scatter(x, v, 0, 1, 3)  # here
    x.copy_(u)  # here
    return u


def shifted(x: torch.Tensor) -> torch.Tensor:
    y = x[::2]
    x[1:] = x[:-1].clone()  # here
    return y * 2


def same_tensor_from_dropout(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    a = x.sin().exp()
    y = F.dropout(x, 0.5, training=False)  # here
    b = a @ w
    y.mul_(3)
    return y + b.sum()


def powers_of_two(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    y = x + 1
    z = torch.ldexp(y, n)  # here
    return z.float() * 2


def positions(x: torch.Tensor) -> torch.Tensor:
    ones = torch.ones((2, 4), dtype=torch.bool)  # here
    n = ones.cumsum(1, dtype=torch.bfloat16)  # here
    return n / 3 + x


def plus_nothing(x: torch.Tensor) -> torch.Tensor:
    v = torch.ceil(x)
    v = v + torch.zeros_like(v)  # here
    return torch.reciprocal(v)


def negative_zero(x: torch.Tensor) -> torch.Tensor:
    y = x * -0.0
    z = F.elu(y)  # here
    return torch.reciprocal(z)


def least(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    z = torch.minimum(x, y)  # here
    return torch.reciprocal(z)


def shrunk(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    z = F.softshrink(y)  # here
    return z + 1


def least_angle(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    z = torch.atan2(x, y)
    return z.amin(1)  # here


@torch.library.custom_op("compile_lens_reported::running_sum", mutates_args=("into",))
def running_sum(of: torch.Tensor, into: torch.Tensor) -> None:
    into[0] = of[0]
    for n in range(1, len(of)):
        into[n] = of[n - 1] + of[n]


def summed_into_itself(x: torch.Tensor) -> torch.Tensor:
    kept = x.clone()  # here
    running_sum(kept, x)  # here
    return x * 2


def _leaves(*shape: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    first, second = (torch.randn(*shape, generator=generator).requires_grad_() for _ in range(2))
    return first, second


def _reported(function: Any, inputs: Any, kind: str, operator: str) -> Miscompile:
    return Miscompile(contextlib.nullcontext, function, inputs, kind, operator)


NAN = float("nan")

REPORTED: dict[str, Miscompile] = {
    # pytorch/pytorch#198131
    "a copy that is read after a write": _reported(
        copied_then_changed, lambda: (torch.zeros(3, 4), torch.arange(12.0).view(3, 4)), "pass", "aten.copy"
    ),
    # pytorch/pytorch#195451
    "a result that becomes the input": _reported(
        scattered, lambda: (torch.zeros(4, 2), torch.ones(2, 2)), "memory reuse", "aten.slice_scatter"
    ),
    "an input that is shifted onto itself": _reported(
        shifted, lambda: (torch.arange(4.0),), "memory reuse", "aten."
    ),
    # pytorch/pytorch#195422
    "a write that is lost": _reported(
        same_tensor_from_dropout, lambda: (torch.ones(2, 2), torch.ones(2, 2)), "AOTAutograd",
        "torch.nn.functional.dropout",
    ),
    # pytorch/pytorch#197091
    "dtype of a power": _reported(
        powers_of_two, lambda: (torch.arange(12.0).view(3, 4).half(), torch.linspace(-2, 2, 12).view(3, 4)),
        "lowering", "aten.ldexp",
    ),
    # pytorch/pytorch#189518
    "dtype of a running sum": _reported(positions, lambda: (torch.rand(4).bfloat16(),), "pass", "aten.full"),
    # pytorch/pytorch#189799, twice
    "zeros that are added": _reported(plus_nothing, lambda: (torch.tensor([-0.5, -0.1, -0.9]),), "pass", "aten.full"),
    "zero of an elu": _reported(negative_zero, lambda: (torch.rand(4),), "lowering", "aten.expm1"),
    # pytorch/pytorch#194347
    "least of two zeros": _reported(
        least, lambda: (torch.tensor([-0.0] * 4), torch.tensor([0.0] * 4)), "lowering", "aten.minimum"
    ),
    # pytorch/pytorch#138385, then of eager
    "NaN that is shrunk": _reported(shrunk, lambda: (torch.tensor([NAN, 1.0, 2.0]),), "pass", "aten.mul"),
    # pytorch/pytorch#198031
    "a copy that an operator needs": _reported(
        summed_into_itself, lambda: (torch.arange(8.0),), "memory reuse", "clone"
    ),
    # pytorch/pytorch#186799
    "gradient of a least element": _reported(least_angle, lambda: _leaves(10, 4), "lowering", "aten.amin"),
}  # fmt: skip
