"""A fresh capture of what a student made."""

from __future__ import annotations

from collections.abc import Callable
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


def differs(function: Any, other: Callable[..., Any], inputs: tuple[Input, ...]) -> str:
    """How the results of two functions differ, on numbers above and below 0; ``""`` where they agree."""
    import torch

    for sign, which in ((1, "above"), (-1, "below")):
        want = other(*(sign * x.detach() for x in made(inputs)))
        got = function(*(sign * x.detach() for x in made(inputs)))
        where = f"for numbers {which} 0"
        if not isinstance(got, torch.Tensor):
            return f"{where} it returns a {type(got).__name__}, and no tensor"
        if got.shape != want.shape:
            return f"{where} its result has the shape {tuple(got.shape)}, and not {tuple(want.shape)}"
        if not torch.allclose(got, want):
            return f"{where} its result has other values"
    return ""
