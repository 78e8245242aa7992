"""Programs whose last call matches no cache entry, and comes nearer to an older entry than to the newest.

Run as a script, this runs them without compile_lens and prints for each whether its last call matches an entry: as it
is, with the mismatch to the nearest entry fixed, and with the mismatch to the newest entry fixed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Callable
from typing import Any

import torch
from torch import ones

Call = tuple[tuple[Any, ...], dict[str, Any], tuple[str, ...]]
SETTINGS: dict[str, Callable[[], contextlib.AbstractContextManager[Any]]] = {
    "no grad": torch.no_grad,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
}


def call(*arguments: Any, under: tuple[str, ...] = (), **named: Any) -> Call:
    return arguments, named, under


@dataclasses.dataclass(frozen=True)
class Farther:
    """A function, the calls that create its variants, the last call, its reported name, and a corrected last call."""

    function: Callable[..., Any]
    calls: tuple[Call, ...]
    last: Call
    source: str
    nearer: Call
    newer: Call
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    limit: int = 8
    alike: bool = False  # torch names one guard of each variant


class Config:
    def __init__(self, t: torch.Tensor | None, n: int) -> None:
        self.t, self.d = t, dict.fromkeys("abc"[:n], 1)


def configured(x: torch.Tensor, config: Config) -> torch.Tensor:
    if config.t is not None:
        x = x + config.t
    return x + len(config.d)


def acted(x: torch.Tensor, act: Callable[..., Any], p: float) -> torch.Tensor:
    y: torch.Tensor = act(x) * p
    return y


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
        "a length, where another one has failed more often": Farther(
            configured,
            tuple(call(ones(2), Config(t, 1)) for t in (None, ones(2), ones(2, dtype=double))),
            call(ones(2), Config(None, 2)),
            "len(config.d)",
            call(ones(2), Config(None, 1)),
            call(ones(2), Config(ones(2), 2)),
        ),
        "a setting, and two": Farther(
            sine,
            (call(ones(2)), call(ones(2), under=("autocast",))),
            call(ones(2), under=("no grad",)),
            "grad_mode",
            call(ones(2)),
            call(ones(2), under=("autocast", "no grad")),
        ),
        "a number, of which each form speaks": Farther(
            acted,
            (call(ones(2), torch.relu, 0.1), call(ones(2), torch.tanh, 0.1)),
            call(ones(2), torch.relu, 0.3),
            "p",
            call(ones(2), torch.relu, 0.1),
            call(ones(2), torch.tanh, 0.3),
            alike=True,
        ),
        "a type, of which each form speaks": Farther(
            sine,
            (call(ones(4, 6)), call(ones(4)), call(ones(4, 6, requires_grad=True))),
            call(ones(4, 6, dtype=double)),
            "x.dtype",
            call(ones(4, 6)),
            call(ones(4, 6, dtype=double, requires_grad=True)),
            {"dynamic": False},
            alike=True,
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
    """Run all calls, and report for each of ``more`` whether it matched a variant."""
    torch._dynamo.reset()
    count = 0

    def backend(gm: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        nonlocal count
        count += 1
        return gm.forward

    compiled = torch.compile(one.function, backend=backend, fullgraph=True, **one.options)
    fitted = []
    with torch._dynamo.config.patch(recompile_limit=one.limit):
        for made in one.calls:
            called(compiled, made)
        for made in more:
            before = count
            try:
                called(compiled, made)
            except torch._dynamo.exc.FailOnRecompileLimitHit:
                fitted.append(False)
            else:
                fitted.append(count == before)
    return fitted


def called(function: Callable[..., Any], made: Call) -> None:
    arguments, named, under = made
    with contextlib.ExitStack() as stack:
        for setting in under:
            stack.enter_context(SETTINGS[setting]())
        function(*arguments, **named)


if __name__ == "__main__":
    found = {}
    for name, one in programs().items():
        found[name] = [run(one, last)[0] for last in (one.last, one.nearer, one.newer)]
    print(json.dumps(found))
