"""Programs that are compiled only partially, and what plain ``torch.compile`` logs for them.

Run as a script it prints torch's own counts and messages as JSON, without any code of the package.
"""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import torch


def training_loop(x: torch.Tensor) -> Any:
    w = x.clone().requires_grad_()
    for i in range(3):
        loss = (w * i).sin().sum()
        loss.backward()
    return w.grad


def training_steps(w: torch.Tensor) -> Any:
    for i in range(3):
        loss = (w * i).sin().sum()
        loss.backward()
    return w.grad


def breaks_twice(x: torch.Tensor) -> torch.Tensor:
    print(end="")
    for _ in range(3):
        x = x.sin()
        print(end="")
    return x


def item_in_try(x: torch.Tensor) -> torch.Tensor:
    a = x.sin()
    b = a.cos()
    try:
        s = b.sum().item()
    except ValueError:
        s = 0
    c = b + s
    return c.exp()


def branch(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    if y.sum() > 0:
        return y + 1
    return y - 1


def in_with(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    with contextlib.suppress(ValueError):
        y = y * 2
        print(end="")
    return y.cos()


def in_while(x: torch.Tensor) -> torch.Tensor:
    i = 0
    while i < 3:
        x = x.sin()
        print(end="")
        i += 1
    return x


def scaled(x: torch.Tensor, n: int) -> torch.Tensor:
    return x * n


def few_recompiles(x: torch.Tensor) -> torch.Tensor:
    for i in range(5):
        print(end="")
        x = scaled(x, i)
    return x


def past_the_limit(x: torch.Tensor) -> torch.Tensor:
    for i in range(12):
        print(end="")
        x = scaled(x, i)
    return x


@torch.compiler.disable
def hidden(x: torch.Tensor) -> torch.Tensor:
    return x * 3


def calls_hidden(x: torch.Tensor) -> torch.Tensor:
    return hidden(x.sin()).cos()


def no_graph_first(x: torch.Tensor) -> torch.Tensor:
    print(end="")
    return x.sin()


def inner(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    torch._dynamo.graph_break()
    return y.cos()


def in_inner(x: torch.Tensor) -> torch.Tensor:
    return inner(x + 1) * 2


def helped(x: torch.Tensor) -> torch.Tensor:
    print(end="")
    return training_loop(x) + 1


def pieces(x: torch.Tensor) -> Iterator[torch.Tensor]:
    yield x.sin()
    yield x.cos()


async def later(x: torch.Tensor) -> torch.Tensor:
    return x.sin()


async def later_pieces(x: torch.Tensor) -> AsyncIterator[torch.Tensor]:
    yield x.sin()


def whole(x: torch.Tensor) -> torch.Tensor:
    return x.sin() + 1


PROGRAMS: tuple[Callable[[torch.Tensor], Any], ...] = (
    training_loop,
    item_in_try,
    branch,
    in_with,
    in_while,
    few_recompiles,
    past_the_limit,
    calls_hidden,
    no_graph_first,
    in_inner,
    helped,
    whole,
)


_LOGS = ("symbolic_convert.__graph_breaks", "guards.__recompiles")


class _Heard(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


def _plain(fn: Callable[[torch.Tensor], Any]) -> dict[str, Any]:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    heard = _Heard()
    loggers = [logging.getLogger(f"torch._dynamo.{name}") for name in _LOGS]
    for logger in loggers:
        logger.addHandler(heard)
    try:
        torch.compile(fn, backend="eager", dynamic=False)(torch.linspace(0, 1, 4))
    finally:
        for logger in loggers:
            logger.removeHandler(heard)
    breaks = [m for m in heard.said if m.startswith("Graph break")]
    return {
        "graphs": torch._dynamo.utils.counters["stats"]["unique_graphs"],
        "breaks": breaks,
        "recompiles": sum(m.startswith("Recompiling function") for m in heard.said),
    }


if __name__ == "__main__":
    torch._logging.set_logs(graph_breaks=True, recompiles=True)
    print("RESULT" + json.dumps({fn.__name__: _plain(fn) for fn in PROGRAMS}))
