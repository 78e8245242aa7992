"""Fresh captures of a student's function, and its comparison with a reference."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, TextIO

from ..api.capture import capture
from ..results.capture import Capture
from .exercise import Input
from .wording import message

Calls = tuple[tuple[Input, ...], ...]


def made(inputs: tuple[Input, ...]) -> list[Any]:
    """Return the input tensors, the same each time."""
    import torch

    generator = torch.Generator().manual_seed(0)
    return [_random(one, generator).requires_grad_(one.grad) for one in inputs]


def _random(one: Input, generator: Any) -> Any:
    import torch

    return torch.rand(one.shape, generator=generator).to(getattr(torch, one.dtype))


def captured(function: Any, calls: Calls, target: str = "") -> Capture:
    """Return one capture of all calls of a function, whose printed output is truncated. Raise the errors of
    ``compile_lens.capture``."""
    with contextlib.redirect_stdout(TruncatedOutput(sys.stdout)):
        if len(calls) == 1:
            return capture(function, *made(calls[0]), target=target or None)
        return capture(each, function, *(made(inputs) for inputs in calls), target=target or None)


def rewritten(rewrite: Any, program: Callable[..., Any], inputs: tuple[Input, ...]) -> Callable[..., Any]:
    """Return the function that a student's backend makes of the graph of a program, to be captured. Raise the errors of
    the backend, and ``TypeError`` if its result is not callable."""
    import torch

    modules: list[Any] = []

    def keep(module: Any, _: Any) -> Any:
        modules.append(module)
        return module.forward

    # Dynamo caches compiled code by code object, and stops after a few backends: each call uses a new code object.
    code = program.__code__.replace()
    torch.compile(FunctionType(code, program.__globals__), backend=keep, fullgraph=True)(*made(inputs))
    with contextlib.redirect_stdout(TruncatedOutput(sys.stdout)):
        called = rewrite(modules[0])
    if not callable(called):
        raise TypeError(message("not callable", name=type(called).__name__))
    owner = getattr(called, "__self__", called)
    if isinstance(owner, torch.fx.GraphModule):
        called = owner  # torch regenerates its code in the first call, which cannot be traced
        called(*made(inputs))

    def run(*args: Any) -> Any:
        result = called(*args)
        return result[0] if isinstance(result, tuple | list) else result

    return run


MAX_PRINTED = 500
"""Most characters of a function's printed output: a tensor of a thousand numbers has nine thousand."""


class TruncatedOutput(io.TextIOBase):
    """Text stream that passes on output up to a limit, then writes a note once."""

    def __init__(self, to: TextIO) -> None:
        self._to, self._left = to, MAX_PRINTED

    def write(self, text: str) -> int:
        """Write the part of ``text`` that fits."""
        kept = text[: max(self._left, 0)]
        self._to.write(kept)
        if len(kept) < len(text) and self._left >= 0:
            self._to.write("\n" * (not kept.endswith("\n")) + message("cut") + "\n")
            self._left = -1
        else:
            self._left -= len(kept)
        return len(text)

    def flush(self) -> None:
        """Flush the underlying stream."""
        self._to.flush()


def each(function: Any, *calls: list[Any]) -> None:
    """Call a function several times. The empty print is a graph break in a loop, so Dynamo skips the loop and compiles
    each call separately."""
    for args in calls:
        print(end="")
        function(*args)


LOOP = each.__code__.co_filename
"""File of that loop: a break there is not the student's."""


def plain_error(function: Any, calls: Calls) -> Exception | None:
    """Return the error that a function raises without a compiler; None if it raises none. It is clearer than a
    compiler's error for the same problem."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            for inputs in calls:
                function(*made(inputs))
    except Exception as error:
        return error
    return None


MIXED_DRAWS = 4
"""Number of comparisons on inputs of both signs, some of which show a dependence on the order of rows, or on the sign
of one number."""

ROUNDING_FACTOR = 16
"""Factor on the reference's own rounding error that another formulation may have."""

RELATIVE_TOLERANCE = 1e-5
"""Additional error allowed, relative to the largest number."""


def differs(function: Any, other: Callable[..., Any], calls: Calls) -> str:
    """Return how the results of two functions, and gradients of inputs that require one, differ on inputs above 0,
    below 0, and of both signs; ``""`` if they agree.

    The exact values are computed in float64; the error allowed depends on the error of ``other`` in the program's own
    precision.
    """
    for inputs in calls:
        for which, numbers in _draws(inputs):
            trained = [one.grad for one in inputs]
            want = _computed(other, [x.double() for x in numbers], trained)
            rounded = _computed(other, numbers, trained)
            computed = _computed(function, numbers, trained)
            for key, *three in zip(("values", "gradient"), computed, rounded, want):
                if slip := _differ(key, *three):
                    return message(which, slip=slip)
    return ""


def _draws(inputs: tuple[Input, ...]) -> Iterator[tuple[str, list[Any]]]:
    import torch

    above = [x.detach() for x in made(inputs)]
    yield "above", above
    yield "below", [-x for x in above]
    for seed in range(1, MIXED_DRAWS + 1):
        generator = torch.Generator().manual_seed(seed)
        yield "mixed", [2 * _random(one, generator) - 1 for one in inputs]


def _computed(function: Callable[..., Any], numbers: list[Any], trained: list[bool]) -> list[Any]:
    """Return the result of a function, and the gradients of all trained inputs as one row."""
    import torch

    inputs = [x.clone().requires_grad_(grad) for x, grad in zip(numbers, trained)]
    result, leaves = function(*inputs), [x for x in inputs if x.requires_grad]
    if not leaves or not isinstance(result, torch.Tensor):
        return [result]
    if not result.requires_grad:
        return [result, torch.cat([torch.zeros_like(x).flatten() for x in leaves])]
    weights = torch.linspace(1, 2, result.numel(), dtype=result.dtype).reshape(result.shape)
    gradients = torch.autograd.grad((result * weights).sum(), leaves, materialize_grads=True)
    return [result, torch.cat([gradient.flatten() for gradient in gradients])]


def _differ(key: str, got: Any, rounded: Any, want: Any) -> str:
    import torch

    if not isinstance(got, torch.Tensor):
        return message("no tensor", name=type(got).__name__)
    if got.shape != want.shape:
        return message("shape", got=tuple(got.shape), want=tuple(want.shape))
    if not want.numel():
        return ""
    want = want.detach()
    error = (rounded.detach().double() - want).abs().max().item()
    allowed = ROUNDING_FACTOR * error + RELATIVE_TOLERANCE * want.abs().max().item()
    if got.isnan().any() and not want.isnan().any():
        return message("nan")
    apart = (got.detach().double() - want).abs().max().item()
    return "" if apart <= allowed else message(key, most=f"{apart:.2g}")
