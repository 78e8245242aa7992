"""A fresh capture of what a student made."""

from __future__ import annotations

from typing import Any

from ..api.capture import capture
from ..results.capture import Capture
from .exercise import Input


def made(inputs: tuple[Input, ...]) -> list[Any]:
    """The tensors, the same each time."""
    import torch

    generator = torch.Generator().manual_seed(0)
    return [torch.rand(i.shape, generator=generator).requires_grad_(i.grad) for i in inputs]


def captured(function: Any, inputs: tuple[Input, ...]) -> Capture:
    """A capture of a function. Raises what ``compile_lens.capture`` raises."""
    return capture(function, *made(inputs))
