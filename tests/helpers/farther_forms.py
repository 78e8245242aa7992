"""Programs whose last call fits none of their forms, and comes nearer to an older one than to the newest.

As a script this runs them without compile_lens, and prints for each whether its last call fits a form, whether it does
with what keeps it from the nearest form mended, and whether it does with what keeps it from the newest one mended.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import torch
from torch import ones

Call = tuple[tuple[Any, ...], dict[str, Any]]


def call(*arguments: Any, **named: Any) -> Call:
    return arguments, named


@dataclasses.dataclass(frozen=True)
class Farther:
    """A function, the calls that make its forms, the last one, what is named of it, and the last one mended."""

    function: Callable[..., Any]
    calls: tuple[Call, ...]
    last: Call
    source: str
    nearer: Call
    newer: Call
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    limit: int = 8


def residual(x: torch.Tensor, r: torch.Tensor | None = None) -> torch.Tensor:
    return x.sin() if r is None else x.sin() + r


def sine(x: torch.Tensor) -> torch.Tensor:
    return x.sin()


def summed(x: torch.Tensor, **k: int) -> torch.Tensor:
    return x * len(k) + sum(k.values())


def switched(x: torch.Tensor, on: bool) -> torch.Tensor:
    return x.sin() if on else x.cos()


def programs() -> dict[str, Farther]:
    double = torch.float64
    learnt = ones(4, requires_grad=True)
    return {
        "a size, and None": Farther(
            residual,
            (call(ones(2)), call(ones(2), ones(2))),
            call(ones(3)),
            "x.size(0)",
            call(ones(2)),
            call(ones(3), ones(3)),
        ),
        "a size of 1, and a type": Farther(
            sine,
            (call(ones(4)), call(ones(5)), call(ones(5, dtype=double))),
            call(ones(1)),
            "x.size(0)",
            call(ones(7)),
            call(ones(1, dtype=double)),
        ),
        "keys, and a length": Farther(
            summed,
            (call(ones(2), a=1), call(ones(2), a=1, b=2)),
            call(ones(2), c=1),
            "list(dict.keys(k))[0]",
            call(ones(2), a=1),
            call(ones(2), c=1, b=2),
        ),
        "at the limit": Farther(
            sine,
            (call(ones(4)), call(learnt)),
            call(ones(6)),
            "x.size(0)",
            call(ones(4)),
            call(ones(6, requires_grad=True)),
            {"dynamic": False},
            2,
        ),
        "what failed earlier": Farther(
            switched,
            (call(ones(4), True), call(learnt, True), call(learnt, False), call(ones(6), True)),
            call(ones(6, requires_grad=True), False),
            "x.size(0)",
            call(learnt, False),
            call(ones(6), False),
            {"dynamic": False},
            4,
        ),
        "as newest": Farther(
            residual,
            (call(ones(2)), call(ones(3)), call(ones(3), ones(3))),
            call(ones(3, dtype=double), ones(3)),
            "x.dtype",
            call(ones(3), ones(3)),
            call(ones(3, dtype=double), None),
        ),
    }


def run(one: Farther, *more: Call) -> list[bool]:
    """Call all, and say of each of ``more`` whether it fitted a form."""
    torch._dynamo.reset()
    count = 0

    def backend(gm: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        nonlocal count
        count += 1
        return gm.forward

    compiled = torch.compile(one.function, backend=backend, fullgraph=True, **one.options)
    fitted = []
    with torch._dynamo.config.patch(recompile_limit=one.limit):
        for arguments, named in one.calls:
            compiled(*arguments, **named)
        for arguments, named in more:
            before = count
            try:
                compiled(*arguments, **named)
            except torch._dynamo.exc.FailOnRecompileLimitHit:
                fitted.append(False)
            else:
                fitted.append(count == before)
    return fitted


if __name__ == "__main__":
    found = {}
    for name, one in programs().items():
        found[name] = [run(one, last)[0] for last in (one.last, one.nearer, one.newer)]
    print(json.dumps(found))
