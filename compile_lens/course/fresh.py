"""A fresh capture of what a student made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..api.capture import capture
from ..results.capture import Capture
from .exercise import Input
from .wording import tell

Calls = tuple[tuple[Input, ...], ...]


def made(inputs: tuple[Input, ...]) -> list[Any]:
    """The tensors, the same each time."""
    import torch

    generator = torch.Generator().manual_seed(0)
    return [torch.rand(i.shape, generator=generator).requires_grad_(i.grad) for i in inputs]


def captured(function: Any, calls: Calls, target: str = "") -> Capture:
    """A capture of a function, of all calls together. Raises what ``compile_lens.capture`` raises."""
    if len(calls) == 1:
        return capture(function, *made(calls[0]), target=target or None)
    return capture(each, function, *(made(inputs) for inputs in calls), target=target or None)


def each(function: Any, *calls: list[Any]) -> None:
    """Call a function several times. What is printed is nothing, but it is a graph break in a loop: Dynamo leaves the
    loop to Python, so that each call is compiled by itself."""
    for args in calls:
        print(end="")
        function(*args)


LOOP = each.__code__.co_filename
"""The file of that loop: a break there is not the student's."""


def differs(function: Any, other: Callable[..., Any], calls: Calls) -> str:
    """How the results of two functions differ, on numbers above and below 0; ``""`` where they agree."""
    for inputs in calls:
        for sign, which in ((1, "above"), (-1, "below")):
            want = other(*(sign * x.detach() for x in made(inputs)))
            got = function(*(sign * x.detach() for x in made(inputs)))
            if slip := _differ(got, want):
                return tell(which, slip=slip)
    return ""


def _differ(got: Any, want: Any) -> str:
    import torch

    if not isinstance(got, torch.Tensor):
        return tell("no tensor", name=type(got).__name__)
    if got.shape != want.shape:
        return tell("shape", got=tuple(got.shape), want=tuple(want.shape))
    return "" if torch.allclose(got, want, atol=1e-6) else tell("values")
