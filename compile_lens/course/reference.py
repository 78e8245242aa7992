"""A fresh capture of what a student made."""

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
    """The tensors, the same each time."""
    import torch

    generator = torch.Generator().manual_seed(0)
    return [_random(one, generator).requires_grad_(one.grad) for one in inputs]


def _random(one: Input, generator: Any) -> Any:
    import torch

    return torch.rand(one.shape, generator=generator).to(getattr(torch, one.dtype))


def captured(function: Any, calls: Calls, target: str = "") -> Capture:
    """A capture of a function, of all calls together; of what it prints, the beginning is printed. Raises what
    ``compile_lens.capture`` raises."""
    with contextlib.redirect_stdout(Cut(sys.stdout)):
        if len(calls) == 1:
            return capture(function, *made(calls[0]), target=target or None)
        return capture(each, function, *(made(inputs) for inputs in calls), target=target or None)


def rewritten(rewrite: Any, program: Callable[..., Any], inputs: tuple[Input, ...]) -> Callable[..., Any]:
    """Return what a student's backend makes of the graph of a program, to be captured. Raises what the backend raises,
    and ``TypeError`` where that cannot be called."""
    import torch

    modules: list[Any] = []

    def keep(module: Any, _: Any) -> Any:
        modules.append(module)
        return module.forward

    # Dynamo keeps what it compiled with the code, and stops after a few backends: each time it gets a code of its own.
    code = program.__code__.replace()
    torch.compile(FunctionType(code, program.__globals__), backend=keep, fullgraph=True)(*made(inputs))
    with contextlib.redirect_stdout(Cut(sys.stdout)):
        called = rewrite(modules[0])
    if not callable(called):
        raise TypeError(message("not callable", name=type(called).__name__))
    owner = getattr(called, "__self__", called)
    if isinstance(
        owner, torch.fx.GraphModule
    ):  # torch makes its code anew at the first call, which cannot be traced
        called = owner
        called(*made(inputs))

    def run(*args: Any) -> Any:
        result = called(*args)
        return result[0] if isinstance(result, tuple | list) else result

    return run


PRINTED = 500
"""Characters of what a function prints: a tensor of a thousand numbers has nine thousand."""


class Cut(io.TextIOBase):
    """Passes on what is printed until it is too much; then it says so, once."""

    def __init__(self, to: TextIO) -> None:
        self._to, self._left = to, PRINTED

    def write(self, text: str) -> int:
        """As much of it as there is room for."""
        kept = text[: max(self._left, 0)]
        self._to.write(kept)
        if len(kept) < len(text) and self._left >= 0:
            self._to.write("\n" * (not kept.endswith("\n")) + message("cut") + "\n")
            self._left = -1
        else:
            self._left -= len(kept)
        return len(text)

    def flush(self) -> None:
        """Flush, so that what was passed on is shown."""
        self._to.flush()


def each(function: Any, *calls: list[Any]) -> None:
    """Call a function several times. What is printed is nothing, but it is a graph break in a loop: Dynamo leaves the
    loop to Python, so that each call is compiled by itself."""
    for args in calls:
        print(end="")
        function(*args)


LOOP = each.__code__.co_filename
"""The file of that loop: a break there is not the student's."""


def plain_error(function: Any, calls: Calls) -> Exception | None:
    """Return the error that a function raises without a compiler; None if it raises none. It names the problem in the
    function's own words, which a compiler's error may leave out."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            for inputs in calls:
                function(*made(inputs))
    except Exception as error:
        return error
    return None


MIXED = 4
"""Number of comparisons on inputs of both signs. Dependence on the order of rows, or on the sign of one number, shows
in some of them."""

ROUNDING = 16
"""Multiple of the reference's own rounding error that another way of writing it may have."""

SLACK = 1e-5
"""Additional error that it may have, relative to the largest number."""


def differs(function: Any, other: Callable[..., Any], calls: Calls) -> str:
    """Return how the results of two functions, and gradients of inputs that have one, differ on inputs above 0, below
    0, and of both signs; ``""`` if they agree.

    What is right is computed with 64 bits; how far from it a program may be, depends on how far from it ``other`` is
    with the bits that the program has.
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
    for seed in range(1, MIXED + 1):
        generator = torch.Generator().manual_seed(seed)
        yield "mixed", [2 * _random(one, generator) - 1 for one in inputs]


def _computed(function: Callable[..., Any], numbers: list[Any], trained: list[bool]) -> list[Any]:
    """Return the result of a function, and the gradient of all that is trained, as one row."""
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
    allowed = ROUNDING * error + SLACK * want.abs().max().item()
    if got.isnan().any() and not want.isnan().any():
        return message("nan")
    apart = (got.detach().double() - want).abs().max().item()
    return "" if apart <= allowed else message(key, most=f"{apart:.2g}")
