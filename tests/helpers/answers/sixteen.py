"""Answers to the exercises of lesson 16."""

from __future__ import annotations

import importlib.util
from typing import Any

import torch

from compile_lens.course.lessons.sixteen import around

from .common import Made, Mistake

TRITON = ("16.2", "16.3") if importlib.util.find_spec("triton") is None else ()
"""Exercises that cannot be done here, since their kernel needs Triton."""

if not TRITON:
    import triton
    import triton.language as tl

    @triton.jit
    def double(x, out, count, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + at, 2 * tl.load(x + at, at < count), at < count)


def doubled(x: torch.Tensor) -> torch.Tensor:
    """As in the lesson."""
    if x.device.type == "cpu":
        return 2 * x
    x = x.contiguous()
    out = torch.empty_like(x)
    double[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
    return out


def with_kernel(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(doubled(torch.sin(x)) + 1)


def claimed(x: torch.Tensor) -> torch.Tensor:
    """Calls doubled(x).t() once: in words alone."""
    return x + 1


def raising(x: Any) -> torch.Tensor:
    raise RuntimeError("no such thing")


RIGHT: dict[str, list[Made]] = {
    "16.1": [
        around,
        lambda x: torch.clamp(torch.sin(x) + torch.sin(x) + 1, min=0),
        lambda x: torch.where(x.sin() > -0.5, 2 * x.sin() + 1, 0),
    ],
    "16.2": [
        lambda x: doubled(torch.relu(torch.sin(x) + 0.5)),
        lambda x: doubled(torch.clamp(torch.sin(x), min=-0.5) + 0.5),
    ],
    "16.3": [lambda x: doubled(x).t(), lambda x: doubled(x).permute(1, 0), lambda x: doubled(x).mT],
}

MISLED: dict[str, list[Mistake]] = {
    "16.1": [
        (
            lambda x: torch.relu(2 * torch.sin(x) + 1) @ torch.eye(1000, device=x.device),
            "3 launches",
            "one loop",
        ),
        (lambda x: torch.relu(2 * torch.sin(x.sort()[0]) + 1), "other values", ""),
        (lambda x: 2 * torch.sin(x) + 1, "for numbers below 0 its result has other values", ""),
        (lambda x: torch.relu(2 * torch.sin(x)) + 1, "for numbers below 0 its result has other values", ""),
        (lambda x: around(x) if x.sum() > 9 else x, "graph break", ""),
        (claimed, "its result has other values", ""),
        (raising, "RuntimeError: no such thing", ""),
    ],
    "16.2": [
        (around, "0 launches of Triton kernels of yours", "is not launched"),
        (lambda x: doubled(torch.sin(x)) + 1, "its result has other values", "before yours"),
        (lambda x: doubled(torch.relu(torch.sin(x) + 1)), "its result has other values", ""),
        (lambda x: doubled(torch.sin(x) + 0.5), "for numbers below 0 its result has other values", ""),
        (lambda x: doubled(doubled(torch.relu(torch.sin(x) + 0.5) / 2)), "2 launches of Triton kernels", ""),
        (lambda x: doubled(x), "its result has other values", ""),
        (claimed, "its result has other values", "is not launched"),
        (raising, "RuntimeError: no such thing", ""),
    ],
    "16.3": [
        (lambda x: 2 * x.t(), "0 launches of Triton kernels of yours", "is not launched"),
        (lambda x: doubled(x.t()), "2 launches; required: exactly 1", "Another kernel copies"),
        (lambda x: doubled(x.t().contiguous()), "2 launches; required: exactly 1", "Another kernel copies"),
        (lambda x: doubled(x).t().contiguous(), "2 launches; required: exactly 1", "Another kernel copies"),
        (doubled, "its result has other values", ""),
        (lambda x: doubled(doubled(x)).t() / 2, "2 launches of Triton kernels of yours", ""),
        (lambda x: doubled(x)[0], "its result has the shape (64,), and not (64, 64)", ""),
        (claimed, "its result has other values", "is not launched"),
        (raising, "RuntimeError: no such thing", ""),
    ],
}

if not TRITON:
    MISLED["16.1"] += [
        (
            with_kernel,
            "1 launch of a Triton kernel of yours; required: exactly 0",
            "always a separate launch",
        ),
        (lambda x: doubled(torch.relu(torch.sin(x) + 0.5)), "2 launches", "always a separate launch"),
    ]
